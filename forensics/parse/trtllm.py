# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""TensorRT-LLM's C++ exceptions and error lines, also where FlashInfer carries them. In: an intake; out: NATIVE events with the
numbered stack, MESSAGE events for error lines without one. Samples:

    [TensorRT-LLM][ERROR] Assertion failed: Can't free tmp workspace (/src/cpp/runtime/tllmBuffers.h:80)
    1       0x7c6dd0a58b16 tensorrt_llm::common::throwRuntimeError(char const*, int, std::string const&) + 97
    2       0x7c6dd0a5aa10 /opt/lib/libtensorrt_llm.so(+0x7aa10) [0x7c6dd0a5aa10]
    -> NATIVE type "Assertion failed", message "Can't free tmp workspace", fields {"file": …, "line": 80}, two frames

    [TensorRT-LLM][ERROR] CUDA runtime error in cudaDeviceSynchronize(): an illegal memory access was encountered (file:20)
    -> NATIVE type "CUDA runtime error"
    [TRT] [E] IExecutionContext::enqueueV3: Error Code 1: Cuda Runtime (…)      -> MESSAGE (TensorRT's own logger)
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.frames import trtllm_frame
from forensics.parse.reading import Lazy, fold, following, hits, make, numbered_stacks, stack_of

_LITERALS = ("[TensorRT-LLM][ERROR]", "[TensorRT-LLM] [ERROR]", "[TRT-LLM] [E]", "[TensorRT-LLM][WARNING]")
_RUNTIME = "CUDA runtime error in "
_TRT = ("[TRT] [E]", "[TensorRT] ERROR:", "[TRT] [F]", "Error Code ")

ANCHORS: tuple[Anchor, ...] = (
    *(Anchor(text.encode(), 0, 60, "trtllm") for text in _LITERALS[:3]),
    Anchor(_RUNTIME.encode(), 1, 60, "trtllm"),
    *(Anchor(text.encode(), 0, 2, "trtllm") for text in _TRT[:3]),
    Anchor(b"tensorrt_llm::common::throwRuntimeError", 12, 60, "trtllm"),
)

_BODY = Lazy(
    r"\[TensorRT-LLM\] ?\[(ERROR|WARNING)\] (?P<message>.*)$|\[TRT-LLM\](?: \[RANK (?P<rank>\d+)\])? \[E\] (?P<python>.*)$"
)
_PLACE = Lazy(r" \(([^()\s]{1,400}):(\d+)\)\s*$")
_KIND = Lazy(
    r"(Assertion failed|CUDA runtime error|CUDA driver error|\[json\.exception\.[\w.]{1,60}|Encountered an error[\w ]{0,60}|NCCL error|cuBLAS error|MPI error)"
)
_TENSORRT = Lazy(r"(?:\[TRT\] \[[EF]\]|\[TensorRT\] ERROR:) ?(?P<message>.*)$")


def parse(intake: Intake) -> list[Event]:
    """Events of TensorRT-LLM and TensorRT."""
    lines = intake.lines
    headers = hits(intake, *_LITERALS[:3], _RUNTIME)
    stacks = numbered_stacks(intake, headers, trtllm_frame, 60)
    events: list[Event] = []
    for header in headers:
        line = lines[header]
        body = _BODY.search(line.raw)
        words = (body["message"] or body["python"] or "") if body else line.text[line.text.find(_RUNTIME) :]
        frames = stacks[header]
        if not frames and "Traceback" in words:
            continue
        if frames:
            # the place may stand at the end of a message of several lines
            for at, more in following(intake, header, 12):
                if at >= frames[0][0]:
                    break
                words += "\n" + more.text
        place = _PLACE.search(words)
        kind = _KIND.search(words)
        fields: dict[str, Any] = {"file": place[1], "line": int(place[2])} if place else {}
        if place:
            words = words[: place.start()]
        if kind and kind[1] == "Assertion failed":
            words = words.partition("Assertion failed:")[2].strip() or words
        native = bool(frames) or (kind is not None and place is not None)
        events.append(
            make(
                EventKind.NATIVE if native else EventKind.MESSAGE,
                line,
                lines[frames[-1][0]] if frames else None,
                parser="trtllm",
                type=kind[1] if kind and native else None,
                message=words,
                stacks=stack_of(intake, frames),
                fields=fields,
                level="ERROR",
            )
        )
    for index in hits(intake, *_TRT[:3]):
        found = _TENSORRT.search(lines[index].raw)
        if found:
            events.append(
                make(
                    EventKind.MESSAGE,
                    lines[index],
                    parser="trtllm",
                    message=found["message"],
                    level="ERROR",
                    fields={"program": "tensorrt"},
                )
            )
    return fold(events)
