"""Where in the job's life and in the model something was said. In: a subject and the events; out: component and phase. Sample:

    frames through models/deepseek_v4_nextn.py -> component "draft_model"; after "Capture cuda graph begin" -> phase "graph_capture"

The draft's marks are those of SGLang and vLLM: speculative workers, *_nextn, *_mtp and *_eagle* model files, draft capture lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from forensics.ingest.compiled import pattern_of
from forensics.match.subject import Subject
from forensics.model.event import Event, EventKind
from forensics.model.stack import Frame

_DRAFT_FRAME = (
    r"speculative/(?:eagle|multi_layer_eagle|standalone|frozen|dflash|dspark)|(?:_nextn|_mtp|_eagle\d?|_eagle3)\.py\b"
    r"|spec_decode/(?:eagle|llm_base_proposer|medusa|draft)|\b(?:forward_draft\w*|draft_extend\w*|propose|NextN\w*|\w+NextN)\b"
)
_TARGET_FRAME = r"/models/\w+\.py\b|model_runner\.py|gpu_model_runner\.py"
_PHASE_FRAME = (
    ("graph_capture", r"cuda_graph_runner|capture_one_batch|capture_model|cudagraph|torch/cuda/graphs\.py"),
    ("weight_load", r"model_loader|load_weights|weight_loader|load_model\b|from_pretrained|safetensors"),
    ("warmup", r"warmup|profile_run|determine_available_memory|_dummy_run|autotune"),
    ("checkpoint", r"save_checkpoint|load_checkpoint|checkpointing\.py|dist_checkpointing"),
    ("train_step", r"train_step|training_step|\bbackward\b|optimizer\.py|training\.py|trainer\.py"),
    ("decode", r"forward_decode|run_batch_decode|event_loop_\w+"),
)


class Places:
    """Answers for one input: built once from its lifecycle events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._marks: dict[int, list[tuple[int, str, str]]] = {}
        for event in events:
            phase, state = event.fields.get("phase"), event.fields.get("state")
            if event.kind is EventKind.LIFECYCLE and isinstance(phase, str):
                self._marks.setdefault(event.span.source, []).append((event.span.first_line, phase, str(state or "begin")))
        for marks in self._marks.values():
            marks.sort()

    def component(self, subject: Subject) -> str | None:
        """draft_model, target_model or None, from the frames' files and functions."""
        names = [_name(frame) for frame in subject.frames]
        if any(pattern_of(_DRAFT_FRAME).search(name) for name in names) or "draft" in subject.text[:300].lower():
            return "draft_model"
        return "target_model" if any(pattern_of(_TARGET_FRAME).search(name) for name in names) else None

    def phase(self, subject: Subject) -> str | None:
        """The phase its frames name, else the last one that began above and has not ended."""
        names = [_name(frame) for frame in subject.frames]
        for phase, pattern in _PHASE_FRAME:
            if any(pattern_of(pattern).search(name) for name in names):
                return phase
        marks = self._marks.get(subject.span.source, [])
        last = bisect_right(marks, (subject.span.first_line, "\uffff", "\uffff"))
        ended: set[str] = set()
        for _, phase, state in reversed(marks[:last]):
            if state == "end":
                ended.add(phase)
            elif phase not in ended:
                return phase
            else:
                ended.discard(phase)
        return None


def _name(frame: Frame) -> str:
    return f"{frame.path} {frame.function} {frame.code or ''}"[:600]
