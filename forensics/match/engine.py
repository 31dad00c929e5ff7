"""Tries signatures on events and lines. In: subjects, facts, signatures; out: hits, folded into one `Finding` a signature. Sample:

    "CUDA error: an illegal memory access was encountered" on TP0…TP3 -> one Finding("cuda.illegal-memory-access", count=4,
                                                                             ranks=(TP0, TP1, TP2, TP3), evidence=(…))

A signature is tried on the events whose text holds its literals, then on lines that hold them and lie in no event it already
matched. Exceptions are only asked what they said, never the source code that a traceback shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from forensics.ingest.asked import written
from forensics.match.conditions import Context, holds
from forensics.match.fixes import fixes_of
from forensics.match.place import Places
from forensics.match.quoting import evidence
from forensics.match.signature import Signature, anchors_of, searcher
from forensics.match.subject import Joined, Subject, Subjects, quotes_a_user, set_aside
from forensics.match.template import fill
from forensics.model.event import EventKind
from forensics.model.knowledge import Facts
from forensics.model.source import Evidence, LogLine, Rank, Span
from forensics.model.verdict import Category, Confidence, Finding, SignatureRole

#: so many quotations stand in a finding; all places stand in `spans`
MOST_EVIDENCE = 8
#: of these the last so many events
_LAST_EVENTS = 3
MOST_SPANS = 500
#: so many events are looked at by rules
MOST_EVENTS = 2000


class Hit(NamedTuple):
    """One match. captures: the pattern's named groups."""

    subject: Subject
    captures: Mapping[str, str] = {}


class Matcher:
    """Holds what all signatures share for one input. assumed: component and phase where the log's own do not say (examples)."""

    def __init__(self, subjects: Subjects, facts: Facts, assumed: Context | None = None) -> None:
        self.subjects, self.facts, self.assumed = subjects, facts, assumed or Context()
        self.places = Places(subjects.events)

    def failing(self, kinds: Collection[EventKind]) -> list[int]:
        """The events of these kinds that were not handled by the program, by index: of very many the first and the last."""
        found = [
            index
            for index, event in enumerate(self.subjects.events)
            if event.kind in kinds and not (event.chain is not None and event.chain.handled)
        ]
        return found if len(found) <= MOST_EVENTS else found[: MOST_EVENTS // 2] + found[-MOST_EVENTS // 2 :]

    def hits(self, one: Signature) -> list[Hit]:
        """Every place where a signature matches: events first, then lines outside them."""
        found = [h for i in self._candidates(one, self.subjects.event_texts) if (h := self._event_hit(one, i))]
        if one.needs_event:
            return found
        taken = _Taken(hit.subject for hit in found)
        for index in self._candidates(one, self.subjects.line_texts):
            subject = self.subjects.line_subject(index)
            if subject is not None and not taken.covers(subject):
                if hit := self.try_on(one, subject):
                    if one.role == "root" and set_aside(subject.text):
                        continue
                    found.append(hit)
        return found

    def _event_hit(self, one: Signature, index: int) -> Hit | None:
        return self.try_on(one, self.subjects.event_subject(index))

    def _candidates(self, one: Signature, texts: Joined) -> list[int]:
        if not texts.texts:
            return []
        literals = anchors_of(one.literals, one.any_literals)
        found: set[int] = set()
        for literal in literals:
            found.update(texts.holding(literal, one.word))
        return sorted(found)

    def try_on(self, one: Signature, subject: Subject) -> Hit | None:
        """The hit of a signature on one subject, or None: literals, exception type, frame, code, pattern, surroundings, conditions."""
        text, rest = subject.text, one.rest
        if not all(literal in text for literal in one.literals):
            return None
        if one.any_literals and not any(literal in text for literal in one.any_literals):
            return None
        if any(literal in text for literal in rest.get("none_literals", ())):
            return None
        if rest.get("events") and subject.kind not in rest["events"]:
            return None
        if rest.get("exception") and not any(_is_type(rest["exception"], name, one.trusted) for name in subject.types):
            return None
        if rest.get("frame") and not any(
            searcher(rest["frame"], one.trusted)(f"{frame.path or frame.module or ''}:{frame.function}") for frame in subject.frames
        ):
            return None
        if rest.get("code") and not any(searcher(rest["code"], one.trusted)(frame.code) for frame in subject.frames if frame.code):
            return None
        captures: Mapping[str, str] = {}
        if one.pattern:
            found = searcher(one.pattern, one.trusted)(text)
            if found is None:
                return None
            captures = {name: value for name, value in found.groupdict().items() if value is not None}
        if self._is_quoted(one, subject):
            return None
        if not self._surroundings_fit(one, subject):
            return None
        when, unless = rest.get("when"), rest.get("unless")
        if when or unless:
            context = self.context(subject, captures)
            if when and holds(when, self.facts, context) is not True:
                return None
            if unless and holds(unless, self.facts, context) is True:
                return None
        return Hit(subject, captures)

    def _is_quoted(self, one: Signature, subject: Subject) -> bool:
        """True where the text stands only in lines that show what a user of the service wrote."""
        wanted = (*one.literals, *one.any_literals)
        places = [
            (text, text.find(w))
            for _, lines in groupby(self.subjects.lines_of(subject.span)[-200:], key=attrgetter("source", "number"))
            for text, w in _holding(tuple(lines), wanted)
        ]
        places += [(raw, last) for raw, first in places for w in wanted if (last := raw.rfind(w)) > first]
        return bool(places) and all(quotes_a_user(raw, at) for raw, at in places)

    def _surroundings_fit(self, one: Signature, subject: Subject) -> bool:
        near, not_near = one.rest.get("nearby", ()), one.rest.get("not_nearby", ())
        if not near and not not_near:
            return True
        around = self.subjects.near(subject, one.rest.get("window", 12))
        return all(literal in around for literal in near) and not any(literal in around for literal in not_near)

    def context(self, subject: Subject, captures: Mapping[str, str]) -> Context:
        """Component and phase of a place, from the log or as assumed."""
        component = self.places.component(subject) or self.assumed.component
        return Context(component, self.places.phase(subject) or self.assumed.phase, captures)

    def finding(self, one: Signature, hits: Sequence[Hit]) -> Finding:
        """All hits of a signature as one finding; the words are those of the first."""
        first, context = hits[0], self.context(hits[0].subject, hits[0].captures)
        # of very many the last ones, too: what ended the job stands there
        ends = hits if len(hits) <= MOST_SPANS else [*hits[: MOST_SPANS // 2], *hits[-(MOST_SPANS // 2) :]]
        ranks = _unique_ranks(hit.subject.rank for hit in hits)
        words = {
            "component": (context.component or "").replace("_", " "),
            "phase": (context.phase or "").replace("_", " "),
            "ranks": _ranks_in_words(ranks),
        }
        words = {key: value for key, value in words.items() if value}
        details = one.details

        def say(text: str) -> str:
            return fill(text, first.captures, self.facts, words)

        return Finding(
            id=one.id,
            role=SignatureRole(one.role),
            category=Category(one.category) if one.category else None,
            title=say(one.title),
            explanation=say(one.why),
            confidence=Confidence(one.confidence),
            evidence=self._evidences(one, hits, say(one.title)),
            domain=one.domain,
            ranks=ranks,
            fixes=fixes_of(one, context, self.facts, say),
            next_steps=tuple(say(step) for step in details.get("next_steps", ())),
            must_not_prove=say(details["must_not_prove"]) if details.get("must_not_prove") else None,
            references=tuple(details.get("references", ())),
            captures=dict(first.captures),
            count=self._count(hits),
            specificity=one.specificity,
            spans=tuple(hit.subject.span for hit in ends),
            events=tuple(hit.subject.event for hit in ends if hit.subject.event is not None),
            own=not one.trusted,
        )

    def _count(self, hits: Sequence[Hit]) -> int:
        """How often it was said: folded events stand for lines that are hits of their own."""
        by_parser: dict[str, int] = {}  # several parsers may read the same lines
        for hit in hits:
            if hit.subject.event is not None:
                event = self.subjects.events[hit.subject.event]
                by_parser[event.parser] = by_parser.get(event.parser, 0) + event.count
        repeats = self.subjects.intake.repeats
        places = [(hit.subject.span.source, hit.subject.span.first_line) for hit in hits if hit.subject.event is None]
        lines = len(places) + sum(repeats.get(place, 0) for place in places)
        folded = max(by_parser.values(), default=0)
        return max(folded, lines) if folded > len(hits) - len(places) else folded + lines

    def _evidences(self, one: Signature, hits: Sequence[Hit], shows: str) -> tuple[Evidence, ...]:
        """What is quoted, each place once: several parsers may have made an event of the same lines."""
        places: dict[tuple[Span, str], Hit] = {}
        for hit in hits:
            places.setdefault((hit.subject.span, hit.subject.stream), hit)
        shown = [self._evidence(one, hit, shows) for hit in _shown(list(places.values()))]
        return tuple({(proof.span, proof.quote): proof for proof in shown}.values())

    def _evidence(self, one: Signature, hit: Hit, shows: str) -> Evidence:
        """The lines of an event that hold the signature's literals; a line hit is its own evidence."""
        wanted = (*one.literals, *one.any_literals)
        stream = hit.subject.stream if hit.subject.event is not None else ""
        return evidence(self.subjects, hit.subject.span, wanted, shows, stream)


def _shown(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits that are quoted: of very many the first, and the last events, since what ended the job may be one of them."""
    if len(hits) <= MOST_EVIDENCE:
        return hits
    first = hits[: MOST_EVIDENCE - _LAST_EVENTS]
    return [*first, *[hit for hit in hits[len(first) :] if hit.subject.event is not None][-_LAST_EVENTS:]]


def _is_type(pattern: str, name: str, trusted: bool) -> bool:
    """An exception's type fits as printed or by its last part."""
    whole = searcher(rf"\A(?:{pattern})\Z", trusted)
    return bool(whole(name) or whole(name.rpartition(".")[2]))


class _Taken:
    """The lines of events that already matched, by source and writer (None: of all writers of the source)."""

    def __init__(self, events: Iterable[Subject]) -> None:
        self._spans: dict[tuple[int, str | None], list[tuple[int, int]]] = {}
        for event in events:
            for writer in (event.stream, None):
                self._spans.setdefault((event.span.source, writer), []).append((event.span.first_line, event.span.last_line))
        for key, spans in self._spans.items():
            merged: list[tuple[int, int]] = []
            for first, last in sorted(spans):
                if merged and first <= merged[-1][1]:
                    merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
                else:
                    merged.append((first, last))
            self._spans[key] = merged

    def covers(self, line: Subject) -> bool:
        """True where a line lies in one of the events (of its own writer, where both are known)."""
        number = line.span.first_line
        for writer in (line.stream, "") if line.stream else (None,):
            spans = self._spans.get((line.span.source, writer), ())
            index = bisect_right(spans, (number, 1 << 62)) - 1
            if index >= 0 and spans[index][1] >= number:
                return True
        return False


def _holding(lines: Sequence[LogLine], wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(text, literal): where each literal stands that one line of the file holds."""
    text, raw = written(lines), lines[0].raw
    for literal in wanted:
        if literal in text:
            yield text, literal
        elif literal in raw:
            yield raw, literal


def _unique_ranks(ranks: Iterable[Rank | None]) -> tuple[Rank, ...]:
    return tuple({rank.key: rank for rank in ranks if rank is not None}.values())


def _ranks_in_words(ranks: Sequence[Rank]) -> str:
    labels = [rank.label for rank in ranks]
    return ", ".join(labels) if len(labels) <= 4 else f"{', '.join(labels[:3])} and {len(labels) - 3} more"
