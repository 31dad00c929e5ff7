"""One walk over a report. In: a `View` or plain values; out: the same with stand-ins, and how many things were replaced. Sample:

Redactor().value(("/home/alice/x", "alice")) -> ("/home/user-1/x", "user-1")
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

from forensics.redact import people, places, prompts, secrets
from forensics.redact.library import detectors
from forensics.redact.rule import STAND_IN, Rule

if TYPE_CHECKING:
    from forensics.model.verdict import Incident

T = TypeVar("T")

_MARK = re.compile(r"\s?…\s?")
#: so much of a secret is told apart from a word that only happens to begin or end alike
_TELLING = 5
_MOST_SECRETS = 500
#: kinds whose names are replaced wherever they stand, once they are known
_EVERYWHERE = ("user", "host", "ip", "mac", "bucket", "account")
#: a number, which a text is full of
_NUMBER = re.compile(r"[\d.,:-]*")


class Redactor:
    """Stand-ins that stay the same over a whole report. counts: kind -> how many different things were replaced."""

    def __init__(self, *incidents: Incident) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self.counts: Counter[str] = Counter()
        self._names: re.Pattern[str] | None = None
        self._everywhere: dict[str, str] = {}
        self._secrets: dict[str, str] = {}
        self._first_walk = False
        self._library = detectors()
        for incident in incidents:
            self._learn(incident)

    def text(self, text: str) -> str:
        """One string with everything replaced that is found in it."""
        if len(text) < 3:
            return text
        text = self._ruled(text, secrets.RULES)
        for found in self._library(text):
            if not STAND_IN.search(found):
                text = text.replace(found, self._stand_in("secret", found))
        for pattern, unit, weak in prompts.RULES:
            text = pattern.sub(lambda m, unit=unit, weak=weak: self._prompt(m, unit, weak), text)  # type: ignore[misc]
        text = self._ruled(text, places.BUCKETS)
        text = self._ruled(text, people.RULES)
        text = self._ruled(text, places.RULES)
        if self._secrets:
            text = self._secrets_again(text)
        if "…" in text and not self._first_walk:
            text = secrets.CUT_TOKEN.sub(lambda m: self._stand_in("secret", m[0]), text)
        return self._again(text)

    def value(self, value: T) -> T:
        """A record, tuple, list or dict of strings, all the way down; twice, so that a name learnt late is missing nowhere."""
        self._first_walk = True
        self._walk(value)
        self._first_walk = False
        return self._walk(value)  # type: ignore[no-any-return]

    def summary(self) -> str:
        """ "2 users, 1 host, 1 secret replaced", or "nothing was replaced"."""
        told = [f"{number} {kind}{'s' if number != 1 else ''}" for kind, number in sorted(self.counts.items())]
        return (", ".join(told) or "nothing") + (" replaced" if told else " was replaced")

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple | list):
            return type(value)(self._walk(one) for one in value)
        if isinstance(value, dict):
            return {key: self._walk(one) for key, one in value.items()}
        if hasattr(type(value), "__match_args__"):
            return type(value)(*(self._walk(getattr(value, name)) for name in type(value).__match_args__))
        return value

    def _learn(self, incident: Incident) -> None:
        """Hosts that the analysis knows by name, whatever they look like, and secrets that a table shows apart from their name."""
        for row in incident.ranks:
            if len(row.rank.node or "") > 2 and row.rank.node != "localhost":
                self._stand_in("host", str(row.rank.node))
        for setting in incident.facts.settings:
            if setting.value:
                self.text(f"{setting.name}={setting.value}")

    def _stand_in(self, kind: str, found: str) -> str:
        if STAND_IN.fullmatch(found):
            return found
        if kind == "path":
            return "…"
        key = (kind, found)
        if key not in self._known:
            self.counts[kind] += 1
            name = f"{kind}-{self.counts[kind]}"
            self._known[key] = f"<{name}>" if kind == "secret" else name
            self._names = None
            if kind == "secret" and len(found) > _TELLING and not _NUMBER.fullmatch(found) and len(self._secrets) < _MOST_SECRETS:
                self._secrets[found] = self._known[key]
        return self._known[key]

    def _counted(self, kind: str, found: str) -> str:
        if (kind, found) not in self._known:
            self.counts[kind] += 1
            self._known[kind, found] = kind
        return kind

    def _prompt(self, match: re.Match[str], unit: str, weak: bool) -> str:
        found = match[2]
        if STAND_IN.search(found) or (weak and not prompts.is_prose(found)):
            return match[0]
        count = found.count(",") + 1 if unit == "token ids" else len(found) - (2 if found[-1:] in "\"']" else 0)
        return f"{match[1]}<{self._counted('prompt', found)}: {count:,} {unit}>"

    def _ruled(self, text: str, rules: tuple[Rule, ...]) -> str:
        low = text.lower()
        for rule in rules:
            text = rule.applied(text, low, self._stand_in)
        return text

    def _secrets_again(self, text: str) -> str:
        """Secrets found elsewhere: whole, or cut by the shortening of a text ("AKIAIOSFO…", "supers … et123")."""
        for secret, name in self._secrets.items():
            if secret in text:
                text = text.replace(secret, name)
        for mark in list(_MARK.finditer(text))[:20][::-1]:
            before, after = text[: mark.start()], text[mark.end() :]
            for secret, name in self._secrets.items():
                start = next((n for n in range(len(secret) - 1, _TELLING - 1, -1) if before.endswith(secret[:n])), 0)
                end = next((n for n in range(len(secret) - 1, _TELLING - 1, -1) if after.startswith(secret[-n:])), 0)
                before = before[: len(before) - start] + name if start else before
                after = name + after[end:] if end else after
            text = before + mark[0] + after
        return text

    def _again(self, text: str) -> str:
        """Names found elsewhere, as whole words: `alice` after `/home/alice`."""
        if self._names is None:
            every = {
                found: kind
                for (kind, found) in self._known
                if kind in _EVERYWHERE and len(found) > 3 and found.lower() not in people.ORDINARY
            }
            longest_first = sorted(every, key=len, reverse=True)[:2000]
            users = [re.escape(found) for found in longest_first if every[found] == "user"]
            others = [re.escape(found) for found in longest_first if every[found] != "user"]
            # alice_run.log and gpu-17.cluster, not gpu-170 nor gpu-17-2
            parts = [rf"(?<![A-Za-z0-9])(?:{'|'.join(users)})(?![A-Za-z0-9])"] if users else []
            parts += [rf"(?<![\w.-])(?:{'|'.join(others)})(?![\w-])"] if others else []
            self._names = re.compile("|".join(parts) or r"(?!)")
            self._everywhere = {found: self._known[kind, found] for found, kind in every.items()}
        return self._names.sub(lambda m: self._everywhere[m[0]], text)
