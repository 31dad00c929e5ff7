"""Which known failures these are. Public verbs: `load_signatures`, `anchors`, `match`, `contradictions`; for writers `lint`
and `explain_line`.

In: an `Intake`, its `Event`s and `Facts`, and signatures (`signatures/rules/`, data). Out: `Finding`s, the most specific first:
what signatures match and what the rules in `forensics.match.rules` derive from knowledge, and `Contradiction`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forensics.ingest.intake import Intake
from forensics.match.load import Signatures, anchors, load_signatures, unusable
from forensics.match.signature import Signature
from forensics.model.event import Event
from forensics.model.knowledge import Facts
from forensics.model.source import Note
from forensics.model.verdict import Contradiction, Finding

__all__ = ["Signature", "Signatures", "anchors", "contradictions", "explain_line", "lint", "load_signatures", "match", "unusable"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forensics.match.explain import explain_line
    from forensics.match.linting import lint

_LAZY = {"lint": "forensics.match.linting", "explain_line": "forensics.match.explain"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def match(intake: Intake, events: Sequence[Event], facts: Facts, signatures: Iterable[Signature]) -> list[Finding]:
    """Everything that matched, the most specific first. A signature that fails leaves a `Note` in `intake.notes`."""
    from forensics.match.engine import Matcher
    from forensics.match.rules import derive
    from forensics.match.subject import Subjects

    matcher = Matcher(Subjects(intake, events), facts)
    found: list[Finding] = []
    for one in signatures:
        try:
            hits = matcher.hits(one)
            if hits:
                found.append(matcher.finding(one, hits))
        except Exception as error:  # one bad signature must not cost the reader the others
            intake.notes.append(Note("match", f"signature {one.id} gave up: {type(error).__name__}: {error}"[:300], hides=True))
    try:
        found = derive(matcher, found)
    except Exception as error:
        intake.notes.append(Note("match", f"the derived rules gave up: {type(error).__name__}: {error}"[:300], hides=True))
    found.sort(key=lambda f: (-f.specificity, f.evidence[0].span.source, f.evidence[0].span.first_line, f.id))
    return found


def contradictions(intake: Intake, events: Sequence[Event], facts: Facts) -> list[Contradiction]:
    """Where the log asked for one thing and another ran."""
    from forensics.match.engine import Matcher
    from forensics.match.rules.contradiction import contradicted
    from forensics.match.subject import Subjects

    return contradicted(Matcher(Subjects(intake, events), facts))
