"""Where in its life the job was, and which part of it. In: frames and lifecycle events; out: the report's words. Sample:

… cuda_graph_runner.py capture … eagle_worker.py draft_forward -> ("graph_capture", "draft_model")
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from forensics.callpath.owners import owner_of
from forensics.data import table
from forensics.model.event import Event, EventKind
from forensics.model.stack import Frame
from forensics.model.verdict import Owner

#: words of `component`, from the most to the least telling: a scheduler runs every model
_COMPONENTS = ("draft_model", "dataloader", "tokenizer", "target_model", "scheduler", "launcher")
_MODELS = ("draft_model", "target_model")
#: what a stack does that is in a model: phases, and the label of a row
_OF_MODELS, _EXECUTION = ("prefill", "decode"), "model execution"


class Stage(NamedTuple):
    """One row of stages.toml."""

    files: tuple[str, ...]
    functions: frozenset[str]
    label: str
    phase: str
    component: str
    weight: int
    owners: tuple[str, ...] = ()
    phase_owners: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def _stages() -> tuple[Stage, ...]:
    return tuple(
        Stage(
            tuple(r["files"]),
            frozenset(r["functions"]),
            r["label"],
            r["phase"],
            r["component"],
            r["weight"],
            tuple(r.get("owners", ())),
            tuple(r.get("phase_owners", ())),
        )
        for r in table("frames/stages")["stage"]
    )


@lru_cache(maxsize=1)
def draft_words() -> tuple[str, ...]:
    """Parts of file names that mean a draft head, the most telling first."""
    return tuple(table("frames/labels")["drafts"]["parts"])


@lru_cache(maxsize=8192)
def _stages_of(path: str, function: str) -> tuple[Stage, ...]:
    name = function.rsplit(".", 1)[-1]
    return tuple(
        stage
        for stage in _stages()
        if (not stage.files or path.endswith(stage.files)) and (not stage.functions or name in stage.functions)
    )


def stages_of(frame: Frame) -> tuple[Stage, ...]:
    """Every row that fits a frame."""
    return _stages_of(frame.path, frame.function)


def owners_of(frames: Sequence[Frame]) -> tuple[Owner, ...]:
    """The owner of each frame of a stack. Where a dump shows file names without their folders, a frame that the table of stages
    knows, and what it calls in such files, is the engine's."""
    found: list[Owner] = []
    entered = False
    for frame in frames:
        owner = owner_of(frame)
        if owner is Owner.USER and frame.file and frame.path.endswith(".py") and "/" not in frame.path:
            if frame.path.removesuffix(".py") in sys.stdlib_module_names:
                owner = Owner.RUNTIME
            else:
                entered = entered or any(stage.component for stage in stages_of(frame))
                owner = Owner.ENGINE if entered else owner
        found.append(owner)
    return tuple(found)


def draft_word(path: str) -> str | None:
    """ "nextn" for a model file of a draft head, else None."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".py").lower()
    parts = stem.split("_")
    return next((word for word in draft_words() if word in parts), None)


def is_model_file(path: str) -> bool:
    """True for a file that defines a model or its layers."""
    return "/models/" in path or path.startswith("models/") or "modeling_" in path.rsplit("/", 1)[-1]


def phase_of(frames: Sequence[Frame], lifecycle: Sequence[Event] = ()) -> str | None:
    """The phase, from the stack; where that says nothing, from the last lifecycle event before (given in log order)."""
    best: Stage | None = None
    for frame in frames:
        for stage in stages_of(frame):
            if not stage.phase or (best is not None and stage.weight <= best.weight):
                continue
            if not stage.phase_owners or owner_of(frame).value in stage.phase_owners:
                best = stage
    started = _started(lifecycle)
    if best is not None and (best.weight > 10 or started is None):
        return best.phase
    return started or (best.phase if best is not None else None)


def _started(lifecycle: Sequence[Event]) -> str | None:
    phase: str | None = None
    for event in lifecycle:
        if event.kind is not EventKind.LIFECYCLE:
            continue
        named = event.fields.get("phase")
        state = event.fields.get("state")
        if state == "begin" and isinstance(named, str):
            phase = named
        elif state == "end" and named == phase:
            phase = None
        elif isinstance(named, str) and named in _EXACT:
            phase = _EXACT[named]
    return phase if phase in _PHASES else None


_PHASES = frozenset(
    ("startup", "weight_load", "graph_capture", "warmup", "prefill", "decode", "train_step", "checkpoint", "shutdown")
)
#: lifecycle words that are no phase of the report but say which one runs; a server that is ready may be idle, or answer no prompts at all
_EXACT: dict[str, str | None] = {"step": "train_step", "decode": "decode", "prefill": "prefill", "train_step": "train_step", "ready": None}


def component_of(frames: Sequence[Frame]) -> str | None:
    """The model component, from the stack: a draft's own file or worker beats the scheduler that runs it."""
    seen: set[str] = set()
    for frame in frames:
        path = frame.path
        if is_model_file(path) and draft_word(path):
            seen.add("draft_model")
        elif is_model_file(path):
            seen.add("target_model")
        words = _called_drafts(frame)
        if words:
            seen.add("draft_model")
        stages = stages_of(frame)
        named = [stage.component for stage in stages if stage.component]
        if "target_model" in named:
            # The target's verification runs inside the draft's worker.
            seen.discard("draft_model")
            named = ["target_model"]
        seen.update(named)
    if seen == {"draft_model", "target_model"} or "draft_model" in seen:
        return "draft_model"
    return next((word for word in _COMPONENTS if word in seen), None)


def runs_a_model(frames: Sequence[Frame]) -> bool:
    """True for a stack in which a model's layers are called, whatever its files are called."""
    rows = (stage for frame in frames for stage in stages_of(frame) if not stage.component)
    return component_of(frames) in _MODELS or any(stage.phase in _OF_MODELS or stage.label == _EXECUTION for stage in rows)


def _called_drafts(frame: Frame) -> bool:
    code = frame.marked or frame.code or ""
    head = code.split("(", 1)[0].strip().removeprefix("return ").rsplit("=", 1)[-1].strip()
    return head.lower().removeprefix("self.") in draft_words()
