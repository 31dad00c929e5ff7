# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Steps of training and batches of serving, from the lines that happen to be kept. In: an intake; out: one LIFECYCLE event a
writer and phase, at its last such line. Sample:

     iteration      120/     500 | consumed samples:        30720 | elapsed time per iteration (ms): 812.1 | …
    [2026-11-29 20:15:30 TP0] Decode batch. #running-req: 8, #token: 4096, …
    {'loss': 2.31, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.12}
    -> LIFECYCLE fields {"phase": "train_step", "state": "done", "first_step": 1, "last_step": 120, "total": 500, "first_line": …}, count = lines seen

Has no anchors: a healthy log is full of these lines, so it reads only what was kept for other reasons, the head, the tail and the
samples. Steps are as the log counts.
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.dialects import serving
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.parse.reading import Lazy, make

ANCHORS: tuple[Anchor, ...] = ()

#: word that must stand in the line, phase, pattern with groups step and total (both optional)
_FORMS: tuple[tuple[str, str, Lazy], ...] = (
    ("iteration ", "train_step", Lazy(r"(?:^|\s)iteration\s{1,12}(?P<step>\d+)\s?/\s{0,12}(?P<total>\d+) ?\|")),
    (
        "Running collective: ",
        "collective",
        Lazy(r"Running collective: CollectiveFingerPrint\(SequenceNumber=(?P<step>\d+), OpType=(?P<op>\w{1,60})"),
    ),
    ("Decode batch", "decode", Lazy(r"Decode batch[.,]")),
    ("Prefill batch", "prefill", Lazy(r"Prefill batch[.,]")),
    (
        "generation throughput",
        "decode",
        # an engine that says that it does nothing does not decode
        Lazy(r"Avg prompt throughput: (?!0\.0 tokens/s, Avg generation throughput: 0\.0 ).{0,80}Avg generation throughput"),
    ),
    ("'loss':", "train_step", Lazy(r"\{'loss': .{0,300}'epoch': (?P<epoch>[\d.]+)")),
    (
        "step",
        "train_step",
        Lazy(
            r"(?:^|[\s\[(|,])(?:global_|training_)?steps?[ :=#]{1,3}(?P<step>\d{1,9})(?:\s?/\s?(?P<total>\d{1,9}))?\b(?=.{0,200}(?:loss|lr|tokens|time|it/s))"
        ),
    ),
    ("Step", "train_step", Lazy(r"(?:^|[\s\[(|])Step[ :=#]{1,3}(?P<step>\d{1,9})(?:\s?/\s?(?P<total>\d{1,9}))?\b")),
    (
        "Iter",
        "train_step",
        Lazy(r"(?:^|[\s\[(|])Iter(?:ation)?[ :=#]{1,3}(?P<step>\d{1,9})(?:\s?/\s?(?P<total>\d{1,9}))?\b"),
    ),
    ("iter = ", "decode", Lazy(r"(?:^|\s)iter = (?P<step>\d{1,9}), .{0,40}\bglobal_rank = \d")),
    ("iter ", "train_step", Lazy(r"(?:^|[\s\[(|])iter (?P<step>\d{1,9})[:,]")),
    (
        "Epoch",
        "train_step",
        Lazy(r"Epoch:? ?\[?(?P<epoch>\d{1,6})\]?.{0,80}?(?:\[ {0,6}|\s|\|)(?P<step>\d{1,9})/(?P<total>\d{1,9})"),
    ),
)
#: lines looked at: the first and the last of the kept ones
_MOST = 20_000


def parse(intake: Intake) -> list[Event]:
    """The last step of each writer and phase."""
    lines = intake.lines if len(intake.lines) <= _MOST else [*intake.lines[: _MOST // 2], *intake.lines[-_MOST // 2 :]]
    found: dict[tuple[int, str, str], dict[str, Any]] = {}
    for line in lines:
        text = line.text
        for word, phase, pattern in _FORMS:
            if word in text:
                if phase == "train_step" and line.dialect in serving():
                    continue  # "Step 2 of the clean-up" is no training step where an engine's logger says it
                match = pattern.search(text[:1_000])
                if match:
                    _note(found, line, phase, match.groupdict())
                    break
    return [_event(phase, state) for (_, _, phase), state in found.items()]


def _note(
    found: dict[tuple[int, str, str], dict[str, Any]], line: LogLine, phase: str, groups: dict[str, str | None]
) -> None:
    key = (line.source, line.stream, phase)
    state = found.setdefault(
        key, {"first": line, "count": 0, "first_step": None, "last_step": None, "total": None, "epoch": None}
    )
    state["last"] = line
    state["count"] += 1
    step = groups.get("step")
    if step is not None:
        state["last_step"] = int(step)
        if state["first_step"] is None:
            state["first_step"] = int(step)
    if groups.get("total"):
        state["total"] = int(groups["total"] or 0)
    if groups.get("epoch"):
        state["epoch"] = float(groups["epoch"] or 0)


def _event(phase: str, state: dict[str, Any]) -> Event:
    fields = {k: state[k] for k in ("first_step", "last_step", "total", "epoch") if state[k] is not None}
    first: LogLine = state["first"]
    return make(
        EventKind.LIFECYCLE,
        state["last"],
        parser="progress",
        message=state["last"].text.strip()[:300],
        count=state["count"],
        fields={"phase": phase, "state": "done", "first_line": first.number, "first_time": first.time, **fields},
    )
