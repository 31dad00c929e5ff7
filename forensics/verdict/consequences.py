"""Failures that follow from another one. In: sightings and cascade findings; out: their roles. Sample:

    ChildFailedError -> role cascade, "the launcher reports that a worker process failed; the worker's own error is the cause"

Rows stand in signatures/verdict/consequences.toml; signatures of the role cascade count the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from forensics.callpath import is_plumbing, of_client, owner_of
from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.needles import needles_of_table
from forensics.ingest.pattern import Pattern
from forensics.ingest.shape import zeroed
from forensics.model.stack import Frame
from forensics.model.verdict import CausalRole, Finding, Owner, SignatureRole
from forensics.verdict.fold import plain
from forensics.verdict.outcome import worked_before
from forensics.verdict.quotes import Quotes
from forensics.verdict.sighting import Sighting

_LOOKED_AT = 4_000
#: lines in which a process reports its abort, thread by thread
_DYING = 400
#: lines within which a program ends that could not load or make what it needs
_UNWINDING = 12
_HEAP = Pattern(r"^(?:free\(\)|munmap_chunk\(\)|realloc\(\)): |^double free or corruption|^corrupted (?:size|double-linked)")
_NOT_MADE = Pattern(r"(?:[Ff]ail(?:ed|ure)? to|[Uu]nable to|[Cc]annot|[Cc]ould not|[Ee]rror) (?:load|creat|init|alloc|open|build|start)")
#: how a process ends by no doing of another one's: whoever reports it, no error of its peers explains it
_OWN_DEATH = Pattern(r"^SIG(?:KILL|SEGV|BUS|FPE|ILL)$")
_CONNECTION = Pattern(r"^(?:ConnectionError|Connection(?:Reset|Aborted|Refused)Error)$")


class Consequence(NamedTuple):
    """One row. conditional: a consequence only while something else explains it; absent: where nothing does, the cause is outside
    the log; inner: finds the exception in a wrapper's text; of_user: fits what the user's own code raises too."""

    id: str
    role: CausalRole
    conditional: bool
    why: str
    type: Pattern[str] | None
    message: Pattern[str] | None
    heading: Pattern[str] | None
    function: Pattern[str] | None
    inner: Pattern[str] | None
    kinds: frozenset[str]
    vanished: bool
    absent: bool
    of_user: bool


_KEYS = ("type", "message", "heading", "function")


@lru_cache(maxsize=1)
def _rows() -> tuple[Consequence, ...]:
    rows = table("verdict/consequences")["consequence"]
    needles = needles_of_table("verdict/consequences", "consequence", _KEYS, re.IGNORECASE)

    def pattern(row: dict[str, Any], key: str, words: dict[str, Any]) -> Pattern[str] | None:
        return Pattern(row[key], re.IGNORECASE, words[key]) if row.get(key) else None

    return tuple(
        Consequence(
            row["id"],
            CausalRole(row["role"]),
            row["when"] == "others",
            row["why"],
            pattern(row, "type", words),
            pattern(row, "message", words),
            pattern(row, "heading", words),
            pattern(row, "function", words),
            Pattern(row["inner"], re.DOTALL) if row.get("inner") else None,
            frozenset(row.get("kinds", ())),
            bool(row.get("vanished")),
            bool(row.get("absent")),
            bool(row.get("of_user", True)),
        )
        for row, words in zip(rows, needles, strict=True)
    )


@lru_cache(maxsize=1)
def _gate() -> tuple[re.Pattern[str], tuple[Consequence, ...]]:
    """What finds any of the words that rows ask of a message, with zeros for its digits, and the rows that ask for none."""
    asked = [words.get("message") for words in needles_of_table("verdict/consequences", "consequence", _KEYS, re.IGNORECASE)]
    words = sorted({zeroed(word) for found in asked for word in found or ()})
    return pattern_of("|".join(map(re.escape, words))), tuple(row for row, found in zip(_rows(), asked, strict=True) if not found)


def _rows_for(message: str) -> tuple[Consequence, ...]:
    """The rows that can fit a sighting with this message, in order."""
    return _rows_for_shape(zeroed(message[:_LOOKED_AT].lower()))


@lru_cache(maxsize=1024)
def _rows_for_shape(shape: str) -> tuple[Consequence, ...]:
    words, others = _gate()
    return _rows() if words.search(shape) is not None else others


def tells_of_nothing(text: str) -> bool:
    """True for the text of an error record that a library prints at every start: rows without conditions call it harmless."""
    rows = (row for row in _rows_for(text) if row.id.startswith("harmless.") and not row.conditional and "message" in row.kinds)
    return any(row.message is not None and row.message.search(text[:_LOOKED_AT]) is not None for row in rows)


def _fits(row: Consequence, seen: Sighting) -> bool:
    """True where a row fits what was raised last and, in a chain, the innermost too: a wrapper around a real cause is none."""
    if row.kinds and seen.kind not in row.kinds:
        return False
    if not row.of_user and own_connection(seen):
        return False
    heading = seen.heading or str(seen.events[0].fields.get("heading", "")) if row.heading else ""
    if row.heading and not row.heading.search(heading[:_LOOKED_AT]):
        return False
    if not _says(row, seen.type, seen.message):
        return False
    if _wraps_a_cause(seen):
        return False
    if row.function:
        frames = [*seen.frames[:4], *seen.frames[-4:]]
        for link in seen.chain[-1:]:
            frames += [*link.frames[:4], *link.frames[-4:]]
        if not any(row.function.search(frame.function.rsplit(".", 1)[-1]) for frame in frames):
            return False
    return True


def own_connection(seen: Sighting) -> bool:
    """True for a broken connection that the user's own code raises: to a data service, say, and not to the job's processes. A library
    between them, by which the code speaks to the service, makes no difference."""
    if seen.kind != "python":
        return False
    if seen.frames and _CONNECTION.search(seen.root_type or "") is not None and owner_of(seen.frames[-1]) is Owner.USER:
        return True
    return any(of_client(name) for name in seen.types) and caller_of(seen) is Owner.USER


def caller_of(seen: Sighting) -> Owner | None:
    """Whose code called what failed: the owner of the innermost exception's frames, or of the next one's that has any."""
    owners = (owner_in(frames) for frames in (seen.frames, *(link.frames for link in seen.chain)))
    return next((owner for owner in owners if owner is not None), None)


def owner_in(frames: Sequence[Frame]) -> Owner | None:
    """Whose code raised it: the innermost frame that is not the interpreter's or its libraries'."""
    for frame in reversed(frames):
        if is_plumbing(frame) or (frame.file == "<string>" and frame is not frames[0]):  # below others: what they evaluate
            continue
        if (owner := owner_of(frame)) is not Owner.RUNTIME:
            return owner
    return None


def _wraps_a_cause(seen: Sighting) -> bool:
    """True for a chain whose innermost exception is no consequence by itself."""
    rows = (row for row in _rows() if row.type or row.message)
    return len(seen.chain) > 1 and not any(_says(row, seen.root_type, seen.root_message) for row in rows)


def _says(row: Consequence, type_: str | None, message: str) -> bool:
    if row.type and not (type_ and row.type.search(type_)):
        return False
    return row.message is None or row.message.search(message[:_LOOKED_AT]) is not None


def _inner(row: Consequence, seen: Sighting) -> tuple[str | None, str] | None:
    """The exception in a wrapper's text; the last one named is the one that was raised there."""
    if row.inner is None:
        return None
    match = row.inner.search(seen.message[:_LOOKED_AT])
    if match is None:
        return None
    groups = match.groupdict()
    message = groups.get("message") or groups.get("message2") or ""
    return (groups.get("type"), message) if message else None


def mark(seen: Sighting, cascades: Sequence[Finding]) -> None:
    """Gives a sighting the role of the first row, then of the first cascade finding, that fits it; others stay without."""
    if seen.handled:
        seen.role, seen.role_why, seen.rule = (
            CausalRole.TEARDOWN,
            "the exception was caught and went no further",
            "handled",
        )
        seen.conditional = True
        return
    for row in _rows_for(seen.message):
        if _fits(row, seen):
            inner = _inner(row, seen)
            if row.inner is not None and inner is None:
                continue
            seen.role, seen.role_why, seen.rule = row.role, row.why, row.id
            seen.conditional, seen.inner, seen.outside = row.conditional, inner, row.absent or not row.conditional
            return
    own_death = seen.kind == "exit" and _OWN_DEATH.search(seen.type or "") is not None
    for finding in () if own_death or own_connection(seen) else cascades:
        if _about(finding, seen) and not _wraps_a_cause(seen):
            seen.role, seen.role_why, seen.rule = CausalRole.CASCADE, finding.title, finding.id
            seen.conditional = seen.outside = True
            return


def mark_alike(seen: Sequence[Sighting], cascades: Sequence[Finding]) -> None:
    """A finding shows a few of its lines only: what was said in the same words elsewhere follows, too."""
    names = {finding.id for finding in cascades}
    marked = {_words(s): s for s in seen if s.rule in names}
    for sighting in seen if marked else ():
        if sighting.role is None and (alike := marked.get(_words(sighting))) is not None and not own_connection(sighting):
            sighting.role, sighting.role_why, sighting.rule = alike.role, alike.role_why, alike.rule
            sighting.conditional, sighting.outside = alike.conditional, alike.outside


def mark_dying(seen: Sequence[Sighting]) -> None:
    """A process that faults while its abort is being reported was dying already: "Fatal Python error: Aborted", then "… Segmentation
    fault" from the same process, or from one of which the log does not say which it is."""
    aborted = [s for s in seen if s.kind == "fatal_signal" and s.type == "SIGABRT"]
    for sighting in seen if aborted else ():
        if sighting.kind != "fatal_signal" or sighting.type != "SIGSEGV" or sighting.role is not None:
            continue
        if any(_same_death(before, sighting) for before in aborted):
            sighting.role, sighting.conditional = CausalRole.CASCADE, True
            sighting.role_why, sighting.rule = "the process faulted while it was already aborting", "segv-while-aborting"


def mark_unwound(seen: Sequence[Sighting], quotes: Quotes) -> None:
    """A program that gives up what it has loaded, and only then fails the C library's heap check: "unable to load the model", then
    "free(): invalid pointer". One that was at work before it complained, or afterwards, gave nothing up."""
    checks = [s for s in seen if s.kind == "native" and s.type == "SIGABRT" and _HEAP.search(s.message) is not None]
    for sighting in checks:
        if (sighting.role is None or sighting.conditional) and any(_gave_up(before, sighting, quotes) for before in seen):
            sighting.role, sighting.conditional = CausalRole.TEARDOWN, True
            sighting.role_why, sighting.rule = "the heap check failed while the program was giving up", "heap-check-while-giving-up"


def _gave_up(before: Sighting, check: Sighting, quotes: Quotes) -> bool:
    """True for a complaint right above a failed heap check, by the same writer, that something could not be loaded or made."""
    if before.span.source != check.span.source or not 0 < check.span.first_line - before.span.first_line <= _UNWINDING:
        return False
    if before.kind != "message" or before.stream != check.stream or _NOT_MADE.search(before.message[:_LOOKED_AT]) is None:
        return False
    return not worked_before(quotes, check.span)


def _same_death(aborted: Sighting, faulted: Sighting) -> bool:
    """True where a fault stands closely behind an abort that may be of the same process."""
    if aborted.span.source != faulted.span.source or not 0 < faulted.span.first_line - aborted.span.first_line <= _DYING:
        return False
    return aborted.stream == faulted.stream and (aborted.rank is None or faulted.rank is None or aborted.rank.key == faulted.rank.key)


def _words(seen: Sighting) -> tuple[str, str | None, str]:
    return (seen.kind, seen.root_type, plain(seen.message.split("\n", 1)[0]))


def cascades_of(findings: Sequence[Finding]) -> list[Finding]:
    """The findings whose signatures name known consequences."""
    return [finding for finding in findings if finding.role is SignatureRole.CASCADE]


def _about(finding: Finding, seen: Sighting) -> bool:
    """True where the finding's words are this failure's own: an interleaved line of another process is not."""
    said = _flat("\n".join((*seen.types, *seen.texts)))
    for proof in finding.evidence:
        if not any(proof.span.overlaps(span) for span in seen.spans):
            continue
        if seen.weight < 3 or proof.span.contains(seen.span):
            return True
        quoted = _flat(proof.quote)
        last = _flat(seen.message)[:60]
        if (
            (last and last in quoted)
            or (quoted and quoted[:60] in said)
            or (not last and seen.type and _flat(seen.type) in quoted)
        ):
            return True
    return False


def _flat(text: str) -> str:
    return pattern_of(r"\s+").sub("", text[:_LOOKED_AT]).lower()
