"""Which values a refused setting may have. In: a failure's message; out: a `Choice`, or None where it names none. Sample:

    choice_in("… expects attention_backend to be one of ['triton', 'torch_native'], but got flashinfer")
    -> Choice(setting="attention_backend", got="flashinfer", allowed=("triton", "torch_native"))

How programs say so is knowledge (signatures/verdict/choices.toml).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.knowledge.settings.names import canonical

#: values in brackets, or quoted ones in a row
_QUOTED = r"""['"`][^'"`\n]{1,80}['"`]"""
_LIST = (
    r"""(?:(?:\w{1,20}\()?(?:\[[^\[\]\n]{1,1500}\]|\{[^{}\n]{1,1500}\}|\([^()\n]{1,1500}\))|"""
    rf"""{_QUOTED}(?:,? (?:or |and )?{_QUOTED}){{1,60}})"""
)
_LOOKED_AT = 8_000
_BRACKETS = re.compile(r"^\w{0,20}\(?[\[{(]|[\]})]\)?$")
_BETWEEN = re.compile(r",\s*(?:or |and )?| or | and |\s*\n\s*")
_VALUE = re.compile(r"[\w./+:-]{1,60}")
_FEWEST, _MOST, _SHOWN = 2, 60, 8
#: engines of which a setting's flag is its name with dashes
_DASHED = ("sglang", "vllm")


class Choice(NamedTuple):
    """setting, got: as the message spells them, None where it does not; allowed: two or more values."""

    setting: str | None
    got: str | None
    allowed: tuple[str, ...]


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(pattern_of(row["pattern"].replace("LIST", _LIST)) for row in table("verdict/choices")["choice"])


def choice_in(message: str) -> Choice | None:
    """The values that a message names as the only ones for a setting."""
    text = message[:_LOOKED_AT]
    for pattern in _patterns():
        found = pattern.search(text)
        if found is None:
            continue
        named = found.groupdict()
        allowed = _divisors(int(named["number"])) if named.get("number") else _values(named["allowed"])
        if allowed:
            return Choice(_plain(named.get("setting")), _plain(named.get("got")), allowed)
    return None


def step_for(choice: Choice, engine: str | None) -> str:
    """What to do about it, in a sentence. engine: name of facts/engines.toml."""
    shown = ", ".join(choice.allowed[:_SHOWN]) + (", …" if len(choice.allowed) > _SHOWN else "")
    was = f" (it is {choice.got})" if choice.got else ""
    setting = choice.setting
    if setting is None:
        return f"Choose one of: {shown}{was}."
    if engine in _DASHED and "_" in setting and canonical(setting) is not None:
        setting = "--" + setting.replace("_", "-")
    return f"Set {setting} to one of: {shown}{was}."


def _divisors(number: int) -> tuple[str, ...]:
    """What divides a number of up to four digits; none where only 1 and itself do."""
    found = tuple(str(size) for size in range(1, number + 1) if number % size == 0)
    return found if len(found) > _FEWEST else ()


def _values(listed: str) -> tuple[str, ...]:
    """The values of a list as it was printed; none where they are anything but plain words."""
    inner = _BRACKETS.sub("", _BRACKETS.sub("", listed.strip()))
    values = [_plain(part) or "" for part in _BETWEEN.split(inner.strip())]
    values = [value for value in values if value]
    if not _FEWEST <= len(values) <= _MOST or not all(_VALUE.fullmatch(value) for value in values):
        return ()
    return () if all(value.isdigit() for value in values) else tuple(dict.fromkeys(values))


def _plain(text: str | None) -> str | None:
    """Without quotes and what ends the sentence."""
    return text.strip().strip("'\"`").rstrip(".,;'\"`") or None if text else None
