"""A job that works on with values that are not finite. In: the analysis of a log's last run, in which nothing failed; out: another one,
or None. Sample:

    iteration 71/ 500 | … | loss scale: 1.0 | grad norm: nan | number of skipped iterations: 0 |       (and the two before it alike)
    -> degraded, numerics: "It trains on, and its loss or gradient norm is not finite"

One such step is none: with a loss scale, steps whose gradients overflow are skipped, and training goes on. Nothing of this stops a job;
whoever reads only its end would call it healthy.
"""

from __future__ import annotations

from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine, Span
from forensics.model.verdict import Category, CausalRole, Confidence, Status
from forensics.verdict.analysis import Analysis
from forensics.verdict.category import Judgement
from forensics.verdict.fold import fold
from forensics.verdict.outcome import is_work
from forensics.verdict.roles import Cast
from forensics.verdict.sighting import Sighting

#: last lines that are looked at, and how many of those that tell such a value must tell NaN, up to the last one
_LAST, _STEPS = 400, 3
#: the same of lines that leave their batch out for it: a job gets over a few of them, and trains no more where there is nothing else
_LEFT_OUT = pattern_of(
    r"(?i)\bskip(?:s|ped|ping)? (?:the |this |that )?(?:batch|step|update|sample)|\b(?:batch|step|update) (?:is |was )?skipped\b"
)
_MANY = 30
#: the training's own values in a trainer's line (Megatron, DeepSpeed, transformers' Trainer, and what prints "loss 2.3")
_VALUE = pattern_of(
    r"(?i)(?<![\w/])(?P<name>grad(?:ient)?[_ ]norm|(?:train(?:ing)?[_ ]|lm |total[_ ])?loss)(?: is|['\"]?\s{0,3}[:=]?)\s{1,4}"
    r"(?P<value>nan|[-+]?[\d.]+(?:e[-+]?\d+)?|[-+]?inf)(?![\w.])"
)
#: a step that a loss scaler left out
_SKIPPED = pattern_of(r"(?i)skipp(?:ed|ing)\b[^|\n]{0,40}:\s{0,4}[1-9]|\bOVERFLOW!")
#: losses that are not of a training step
_MEASURED = pattern_of(r"(?i)\b(?:eval|valid\w{0,5}|test)\b")


def trains_on_nan(last: Analysis, intake: Intake) -> Analysis | None:
    """What the last run came to where it did not fail and trained on with NaN until the log's end."""
    if last.failed or last.doubt is not None or last.handled:
        return None
    told = [line for line in intake.lines[-_LAST:] if last.run.holds(Span(line.source, line.number, line.number)) and _tells(line)]
    least = _MANY if told and _LEFT_OUT.search(told[-1].text[:2_000]) else _STEPS
    if len(told) < least or not all(map(_is_nan, told[-least:])):
        return None
    first = told[-1]
    for line in reversed(told):
        if not _is_nan(line):
            break
        first = line
    span, message = Span(first.source, first.number, first.number), first.text.strip()[:500]
    event = Event(EventKind.MESSAGE, span, parser="not_finite", message=message, time=first.time, fields={"by": "trainer"})
    seen = Sighting(
        kind="message",
        type=None,
        message=message,
        root_type=None,
        root_message=message,
        rank=None,
        time=first.time,
        span=span,
        weight=2,
        events=[event],
        stream=first.stream,
        spans=[span],
    )
    group = fold([seen])[0]
    cast = Cast([group], group)
    cast.roles[id(group)] = CausalRole.INITIATING
    title = "It trains on, and its loss or gradient norm is not a number any more"
    judgement = Judgement(Category.NUMERICS, Confidence.SUPPORTED, title=title)
    return Analysis(last.run, cast, True, Status.DEGRADED, judgement, findings=last.findings)


def _tells(line: LogLine) -> bool:
    """True for a line of a training step that tells such a value, and was not left out for an overflow."""
    text = line.text[:2_000]
    if _VALUE.search(text) is None or _SKIPPED.search(text) is not None or _MEASURED.search(text) is not None:
        return False
    return is_work(line) or "grad" in text or _LEFT_OUT.search(text) is not None


def _is_nan(line: LogLine) -> bool:
    """True where the first loss of the line, or its gradient norm, is no number."""
    values: dict[str, str] = {}
    for found in _VALUE.finditer(line.text[:2_000]):
        values.setdefault("grad" if "grad" in found["name"].lower() else "loss", found["value"].lower())
    return "nan" in values.values()
