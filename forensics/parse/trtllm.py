"""TensorRT-LLM's C++ exceptions and error lines, also where FlashInfer carries them. In: an intake; out: NATIVE events with the
numbered stack, MESSAGE events for error lines without one. Samples:

    [TensorRT-LLM][ERROR] Assertion failed: Can't free tmp workspace (/src/cpp/runtime/tllmBuffers.h:80)
    1       0x7c6dd0a58b16 tensorrt_llm::common::throwRuntimeError(char const*, int, std::string const&) + 97
    2       0x7c6dd0a5aa10 /opt/lib/libtensorrt_llm.so(+0x7aa10) [0x7c6dd0a5aa10]
    -> NATIVE type "Assertion failed", message "Assertion failed: Can't free …", fields {"file": …, "line": 80}, two frames

    [TensorRT-LLM][ERROR] CUDA runtime error in cudaDeviceSynchronize(): an illegal memory access was encountered (file:20)
    -> NATIVE type "CUDA runtime error"
    "failed to load 'm': [TensorRT-LLM][ERROR] Assertion failed: x (file:20)\\n1       0x7c6d tensorrt_llm::f() + 97\\n2 …"  -> the same
    [TRT] [E] IExecutionContext::enqueueV3: Error Code 1: Cuda Runtime (…)      -> MESSAGE (TensorRT's own logger)
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import Rank
from forensics.model.stack import Frame
from forensics.parse.frames import trtllm_frame
from forensics.parse.reading import Lazy, clipped, fold, following, hits, make, numbered_stacks, stack_of

_LITERALS = ("[TensorRT-LLM][ERROR]", "[TensorRT-LLM] [ERROR]", "[TRT-LLM] [E]")
#: the same with the rank between, in jobs of several
_OF_RANK = "] [E] "
_RUNTIME = "CUDA runtime error in "
_TRT = ("[TRT] [E]", "[TensorRT] ERROR:", "[TRT] [F]")

ANCHORS: tuple[Anchor, ...] = (
    *(Anchor(text.encode(), 0, 60, "trtllm") for text in _LITERALS),
    Anchor(_OF_RANK.encode(), 0, 60, "trtllm"),
    Anchor(_RUNTIME.encode(), 1, 60, "trtllm"),
    *(Anchor(text.encode(), 0, 2, "trtllm") for text in _TRT),
    Anchor(b"tensorrt_llm::common::throwRuntimeError", 12, 60, "trtllm"),
)

_PYTHON = Lazy(r"\[TRT-LLM\](?: \[RANK (?P<rank>\d+)\])? \[E\] (?P<message>.*)$")
_RAISED = Lazy(r"^\s*(?:[\w.]{0,80}(?:Error|Exception|TllmException)): ")
_PLACE = Lazy(r" \(([^()\s]{1,400}):(\d+)\)\s*$")
_KIND = Lazy(
    r"(Assertion failed|CUDA runtime error|CUDA driver error|\[json\.exception\.[\w.]{1,60}|NCCL error|cuBLAS error|MPI error)"
)
#: the stack in the same line, its line feeds escaped: how Triton's server logs what a backend said
_ESCAPED = Lazy(r"\\n\d{1,3} {1,12}0x[0-9a-f]{4}")
_TRT_CODE = Lazy(r"^\W?\[\w[\w.]{1,80}::\w{1,80}::\d{1,6}\] Error Code \d{1,4}: |^\w{1,80}::\w{1,80}: Error Code \d{1,4}: ")
_NAMED = Lazy(r"(?:^|\s)((?:[A-Za-z_]\w{0,80}::){1,6}\w{1,80}(?:Exception|Error))$")
#: the head of a stack that is another report's: UCX's and Open MPI's of a signal
_OTHERS = Lazy(r"^\s*={4} backtrace|: Caught signal \d|\*{3} Process received signal \*{3}")
#: the rank of which a parent or a worker tells that its executor did not come up
_OF_EXECUTOR = Lazy(r"\bexecutor on rank (\d{1,5})\b")
#: an autotuner's warning that it leaves a tile out and goes on: "Skipping tactic <runner> 15, due to failure while profiling"
_LEFT_OUT = Lazy(r"\bdue to failure while profiling\W{0,4}$")
_TENSORRT = Lazy(r"(?:\[TRT\] \[[EF]\]|\[TensorRT\] ERROR:) ?(?P<message>.*)$")


def parse(intake: Intake) -> list[Event]:
    """Events of TensorRT-LLM and TensorRT, alike ones folded."""
    headers = hits(intake, *_LITERALS, _RUNTIME)
    ranked = [index for index in hits(intake, _OF_RANK) if "[TRT-LLM] [RANK " in intake.lines[index].raw[:200]]
    headers = sorted({*headers, *ranked})
    # what TensorRT's own logger says through TensorRT-LLM's is one line; the exception made of it, with its stack, comes later
    own = [header for header in headers if not _TRT_CODE.search(intake.lines[header].text[:2_000]) and not _is_traceback(intake, header)]
    stacks = numbered_stacks(intake, own, trtllm_frame, 60)
    events = [event for header in headers if (event := _event(intake, header, stacks.get(header))) is not None]
    for index in hits(intake, *_TRT):
        line = intake.lines[index]
        found = _TENSORRT.search(line.raw)
        if found:
            fields = {"program": "tensorrt"}
            events.append(
                make(EventKind.MESSAGE, line, parser="trtllm", message=found["message"], level="ERROR", fields=fields)
            )
    return fold(events)


def _is_traceback(intake: Intake, header: int) -> bool:
    """True for the first line of a Python traceback: the frames with numbers below it are those of the exception at its end."""
    return intake.lines[header].text[:200].rstrip().endswith("Traceback (most recent call last):")


def _event(intake: Intake, header: int, stack: list[tuple[int, Frame]] | None) -> Event | None:
    """One error line with the frames below it (None: it is one line). What stands before the last tag is fields["heading"]."""
    line = intake.lines[header]
    frames = stack or []
    if frames and any(at < frames[0][0] and _OTHERS.search(more.text[:300]) for at, more in following(intake, header, 12)):
        stack, frames = None, []
    text = clipped(line.raw, _LITERALS[0])
    if not frames and _ESCAPED.search(text):
        text, *below = text.split("\\n")
        frames = [(header, found[1]) for part in below if (found := trtllm_frame(part.rstrip('"'))) is not None]
    body = _PYTHON.search(text)
    native_words = body is None or any(tag in body["message"] for tag in _LITERALS[:2])
    heading, words = _innermost(text if body is None else body["message"]) if native_words else ("", body["message"] if body else "")
    if "Traceback" in words and (not frames or _is_traceback(intake, header)):
        return None
    if heading and _LEFT_OUT.search(heading):
        return None
    for at, more in following(intake, header, 12) if stack is not None else ():
        if not frames or at >= frames[0][0] or _PLACE.search(words):
            break
        words += "\n" + more.text  # the place may stand at the end of a message of several lines
    fields: dict[str, Any] = {}
    place = _PLACE.search(words)
    if place:
        fields = {"file": place[1], "line": int(place[2])}
        words = words[: place.start()]
    kind = _KIND.search(words)
    if kind and kind[1] == "Assertion failed":
        words = words[words.index("Assertion failed") :].strip()
    if not words.removeprefix("Assertion failed:").strip(" |"):
        return None  # a cell of a table, whose text goes on in the next row
    named = _NAMED.search(heading)
    if heading:
        fields["heading"] = heading[-300:]
    told = _OF_EXECUTOR.search(heading or words[:200])
    carried = "what():" in text or _RAISED.match(line.text) is not None
    native = bool(frames) or (kind is not None and place is not None)
    if carried and not frames:
        return None  # the exception's own parser has the line
    return make(
        EventKind.STACK if carried else EventKind.NATIVE if native else EventKind.MESSAGE,
        line,
        intake.lines[frames[-1][0]] if frames else None,
        parser="trtllm",
        type=named[1] if named and native else kind[1] if kind and native else None,
        message=words,
        rank=Rank(f"rank {told[1]}", int(told[1])) if told and line.rank is None else None,
        stacks=stack_of(intake, frames),
        fields=fields,
        level="ERROR",
    )


def _innermost(text: str) -> tuple[str, str]:
    """(what stands before, the message of) the last `[TensorRT-LLM][ERROR]` of a line."""
    for tag in _LITERALS[:2]:
        before, found, words = text.rpartition(tag)
        if found:
            return before.rpartition(tag)[2].strip(" :"), words.strip()
    return "", text[max(text.find(_RUNTIME), 0) :]
