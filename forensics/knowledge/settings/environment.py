"""Reads environment variables set in a log. In: retained lines; out: `Setting` rows named as the variable. Samples:

    export NCCL_DEBUG=INFO                                      -> Setting("NCCL_DEBUG", "INFO", "asked", …)
    host:12:34 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
    environ: {'VLLM_USE_V1': '1', …}

Advice is no setting: "For debugging consider passing CUDA_LAUNCH_BLOCKING=1" stands in every CUDA error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.knowledge.linerules import LineRule, Sightings
from forensics.knowledge.settings.commands import Command
from forensics.model import LogLine, Setting, Span

_MAX_A_LINE = 60
_VALUE = r"(?:\"([^\"]{0,400})\"|'([^']{0,400})'|([^\s\"',;)`]{0,400}))"
_SET_BY = r"\b([A-Z][A-Z0-9_]{4,60}) set (?:by environment )?to (\S{1,200})"


@cache
def environment_rules() -> tuple[LineRule, ...]:
    """Prefixes and names of the settings table, each followed by "=" somewhere in the line."""
    facts = table("facts/settings")["environment"]
    known = "|".join([*(re.escape(p) + r"[A-Z0-9_]{1,60}" for p in facts["prefixes"]), *map(re.escape, facts["names"])])
    pattern = rf"(?<![A-Za-z0-9_$])({known})(?:=|[\"']: ?)(?=\S){_VALUE}"
    advice = {"advice": facts["unless"]}
    return (
        LineRule(tuple(facts["anchors"]), pattern, fields=advice),
        LineRule(tuple(facts["head_anchors"]), pattern, where="head", fields=advice),
        LineRule((" set by environment to ",), _SET_BY),
    )


def environment(seen: Sightings, launched: list[Command]) -> Iterator[Setting]:
    """Variables of the log's lines and of its launch commands, each name and value once."""
    once: set[tuple[str, str]] = set()
    for setting in _all(seen, launched):
        key = (setting.spelled, setting.value or "")
        if key not in once:
            once.add(key)
            yield setting


def _all(seen: Sightings, launched: list[Command]) -> Iterator[Setting]:
    for command in launched:
        for name, value in command.variables.items():
            yield _setting(name, value, command.span)
    *plain, by_library = environment_rules()
    covered = [command.span for command in launched]
    read: set[int] = set()
    for match in seen.matches(plain):
        if match.at not in read and not any(span.overlaps(match.span) for span in covered):
            read.add(match.at)
            yield from _of_line(match.line, match.rule)
    for match in seen.matches([by_library]):
        yield _setting(match.found[1], match.found[2].rstrip("."), match.span)


def _of_line(line: LogLine, rule: LineRule) -> Iterator[Setting]:
    """Every variable of a line that is not given as advice."""
    text = line.raw[:8_000]
    advice = pattern_of(rule.fields["advice"])
    for number, found in enumerate(rule.pattern.finditer(text)):
        if number >= _MAX_A_LINE:
            return
        before = text[: found.start()].rstrip("\"'` ")
        exported = before.endswith(("export", "-e", "--env")) and len(before) < 40
        if before and not exported and advice.search(text[max(0, found.start() - 60) : found.start()]):
            continue
        if pattern_of(r"[a-z]{3,} [a-z]{2,} \S{0,3}$").search(before[-60:] + " ") and not exported:
            continue  # in the middle of a sentence
        value = next((v for v in found.groups()[1:] if v is not None), "")
        if ".*" in value or value.endswith("/export"):
            continue  # a pattern of sed's, which puts the variable into a script
        yield _setting(found[1], value, Span(line.source, line.number, line.number))


@cache
def _meaning() -> dict[str, tuple[str, str | None]]:
    rows = table("facts/settings").get("environment_setting", ())
    return {row["variable"]: (row["setting"], row.get("component")) for row in rows}


def _setting(name: str, value: str, span: Span) -> Setting:
    canonical, component = _meaning().get(name, (name, None))
    return Setting(canonical, value, "asked", span, component, name)
