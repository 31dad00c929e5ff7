"""Versions of engines, libraries, CUDA and driver. In: retained lines; out: `SoftwareVersion` rows. Sample:

    torch.distributed.DistBackendError: NCCL error in: …/NCCLUtils.hpp:317, unhandled system error, NCCL version 2.21.5
    -> SoftwareVersion("nccl", "2.21.5", span, how="banner")
    …/csrc/trtllm_batched_gemm_runner.cu:286: Error occurred when running GEMM!
    -> SoftwareVersion("flashinfer", "0.6.12", span, how="fingerprint")

One row a package and value, the most trusted first (`Facts.version` returns that). A fingerprint that fits several releases gives
"first to last" ("0.6.4 to 0.6.10"), which compares as its first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from forensics.data import table
from forensics.knowledge.linerules import LineMatch, LineRule, Sightings, rules
from forensics.model import SoftwareVersion, Span

_MAX_LISTED = 2_000


def version_rules() -> tuple[LineRule, ...]:
    """All rows that this module reads."""
    return (*rules("version_lines"), *_list_rules(), *_fingerprint_rules())


def versions(seen: Sightings) -> tuple[SoftwareVersion, ...]:
    """Versions named or shown in the log, one a package and value, in order of trust."""
    found: dict[tuple[str, str], SoftwareVersion] = {}
    ranked = [*_listed(seen), *_banners(seen), *_fingerprints(seen)]
    for version in sorted(ranked, key=lambda v: _TRUST.get(v.how, 3)):
        found.setdefault((version.name, version.value), version)
    exact = {v.name for v in found.values() if v.how != "fingerprint"}
    return tuple(v for v in found.values() if v.how != "fingerprint" or v.name not in exact)


#: what is believed first where several say different things
_TRUST = {"banner": 0, "package": 0, "path": 1, "image": 2, "build": 2, "fingerprint": 4, "driver": 5, "config": 6}


def _banners(seen: Sightings) -> Iterator[SoftwareVersion]:
    for match in seen.matches(rules("version_lines")):
        name = match.rule.fields.get("name", match.rule.fields["package"])
        yield SoftwareVersion(name, _clean(match.found["version"]), match.span, match.rule.fields["how"])
        yield from _beside(match)


def _beside(match: LineMatch) -> Iterator[SoftwareVersion]:
    """CUDA, ROCm or torch that the same words give ("2.7.1+cu126", "flashinfer-0.1.6+cu121torch2.4")."""
    for key, value in match.found.groupdict().items():
        if value and key == "cuda":
            dotted = value if "." in value else f"{value[:-1]}.{value[-1]}"
            yield SoftwareVersion("cuda", dotted, match.span, "build")
        elif value and key in ("rocm", "torch"):
            yield SoftwareVersion(key, value, match.span, "build")


def _clean(version: str) -> str:
    return version.rstrip(".-,;")


@cache
def _list_rules() -> tuple[LineRule, ...]:
    row = table("facts/version_lines")["list"]
    return (LineRule(tuple(row["anchor"]), row["pattern"], where="head", fields={"packages": row["packages"]}),)


def _listed(seen: Sightings) -> Iterator[SoftwareVersion]:
    """Known packages with their versions, several a line."""
    rule = _list_rules()[0]
    for index in sorted({index for literal in rule.anchors for index in seen.of(literal, "head")}):
        line = seen.intake.lines[index]
        for number, found in enumerate(rule.pattern.finditer(line.raw[:20_000])):
            package = rule.fields["packages"].get((found["name"] or found["name2"]).lower())
            if package:
                yield SoftwareVersion(
                    package, _clean(found["version"]), Span(line.source, line.number, line.number), "package"
                )
            if number > _MAX_LISTED:
                break


@cache
def _fingerprint_rules() -> tuple[LineRule, ...]:
    """A row for each source file whose checks moved from release to release: "<file>:<line>"."""
    found = []
    for check in table("facts/flashinfer_lines")["check"]:
        pattern = re.escape(check["file"]) + r":(?P<line>\d{1,5})\b"
        found.append(LineRule((check["file"],), pattern, fields=check))
    return tuple(found)


def _fingerprints(seen: Sightings) -> Iterator[SoftwareVersion]:
    """FlashInfer dated by the source line that an error names."""
    for match in seen.matches(_fingerprint_rules()):
        check = match.rule.fields
        if check["text"].split("(")[0] not in _near(match, seen):
            continue
        if fits := flashinfer_of_line(check["file"], int(match.found["line"]), check["text"]):
            value = fits[0] if len(fits) == 1 else f"{fits[0]} to {fits[-1]}"
            yield SoftwareVersion("flashinfer", value, match.span, "fingerprint")


def _near(match: LineMatch, seen: Sightings) -> str:
    """The line and the one after it: long messages are wrapped."""
    return " ".join(line.raw[:8_000] for line in seen.intake.lines[match.at : match.at + 2])


def flashinfer_of_line(file: str, line: int, text: str = "") -> Sequence[str]:
    """FlashInfer releases whose `file` has that check at `line` (1-based; the compiler may print up to 5 lines later)."""
    for slack in range(6):
        for check in table("facts/flashinfer_lines")["check"]:
            if check["file"] == file and (not text or check["text"] == text):
                fits = [row["version"] for row in check["releases"] if line - slack in row["lines"]]
                if fits:
                    return fits
    return ()
