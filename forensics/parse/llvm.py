# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""LLVM, MLIR and Triton's compiler, ptxas. In: an intake; out: NATIVE events (type: "MLIR error", "LLVM ERROR", "ptxas fatal", "Triton
compiler crash"). Samples:

    /srv/engine/kernels/prefix_prefill.py:36:0: error: Failures have been detected while processing an MLIR pass pipeline
    loc("/srv/engine/kernels/decode.py":310:16): error: 'tt.load' op requires …
    python3: /src/triton/lib/Conversion/TritonGPUToLLVM.cpp:42: void f(): Assertion `layout' failed.
    LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32
    PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/ and include the crash backtrace.
    Stack dump:
    0.      Running pass 'Function Pass Manager' on module
     #0 0x00007f10 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (/opt/libtriton.so+0x1234)
    ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'
    -> NATIVE with the message from the error on; MLIR errors carry fields {"file", "line", "pass", "op"}; stacks where printed

Assertion lines of the C library (`prog: file:line: function: Assertion `x' failed.`) have type "assert" whatever program they are of.
"""

from __future__ import annotations

from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.stack import Frame
from forensics.parse.cxxnames import MAX_NAME, demangle
from forensics.parse.reading import Lazy, clipped, fold, following, hits, make, numbered_stacks, stack_of

_LOC = "): error: "
_PLACE = ": error: "
_LLVM = "LLVM ERROR: "
_BUG = "PLEASE submit a bug report"
_ASSERT = ": Assertion "
_PASS = "Pipeline failed while executing"
_PTXAS = ("ptxas fatal", "ptxas error", "ptxas /", "nvlink fatal", "nvlink error", "`ptxas` failed", "nvJitLink error")
_REMARK = "Failures have been detected while processing an MLIR pass pipeline"

ANCHORS: tuple[Anchor, ...] = (
    Anchor(b'loc("', 1, 4, "llvm"),
    Anchor(b"error: Failures have been detected while", 1, 4, "llvm"),
    Anchor(b": error: 'tt", 1, 4, "llvm"),
    Anchor(b": error: 'llvm.", 1, 4, "llvm"),
    Anchor(b": error: 'arith.", 1, 4, "llvm"),
    Anchor(b": error: operation ", 1, 4, "llvm"),
    Anchor(_LLVM.encode(), 2, 40, "llvm"),
    Anchor(_BUG.encode(), 2, 60, "llvm"),
    Anchor(_ASSERT.encode(), 1, 8, "llvm"),
    Anchor(_PASS.encode(), 1, 2, "llvm"),
    *(Anchor(text.encode(), 1, 6, "llvm") for text in _PTXAS if text != "ptxas /"),
    Anchor(b"ptxas /tmp", 0, 3, "llvm"),
)

_MLIR = Lazy(
    r"(?:loc\(\"(?P<file>[^\"]{1,400})\":(?P<line>\d+):\d+\)|(?P<path>[^\s:\"]{1,400}\.(?:py|mlir|ttir|ttgir|cu)):(?P<row>\d+):\d+): error: (?P<message>.+)$"
)
_OP = Lazy(
    r"'((?:tt|ttg|ttng|triton_gpu|triton_nvidia_gpu|llvm|arith|scf|nvvm|rocdl|memref|gpu|nvgpu|builtin|amdgpu|cf|math)\.[\w.]{1,60})' op"
)
_FAILED_PASS = Lazy(r"Pipeline failed while executing \[`?(?P<pass>[\w-]{1,80})")
_C_ASSERT = Lazy(
    r"(?:^|\s)(?P<message>(?:(?P<program>[\w./+-]{1,120}): )?(?P<file>[^\s:\"'`(]{1,400}):(?P<line>\d+): (?P<function>.{1,1500}?): Assertion [`'](?P<assertion>.{1,1500}?)' failed\.?)"
)
_STACK = Lazy(r"^\s*#(\d{1,3}) (0x[0-9a-f]+) (?:(.+?) )?\((\S+?)(?:\+0x[0-9a-f]+)?\)\s*$")
_PTX = Lazy(
    r"(?P<message>(?P<type>ptxas fatal|ptxas error|nvlink fatal|nvlink error|ptxas|`ptxas` failed|nvJitLink error) ?(?:[^:]{0,300}: )?.*)$"
)
_PTX_LINE = Lazy(r"(?P<message>ptxas \S{1,300}, line \d+; (?P<type>error|fatal|warning|info) ?: .*)$")

#: how ptxas tells of lines that it took all the same
_ADVICE = ("warning", "info")
#: a complaint of Triton's pipeliner that stops nothing: the kernel is built all the same
_PIPELINER = "operation scheduled before its operands"


def parse(intake: Intake) -> list[Event]:
    """Events of compilers built on LLVM and of NVIDIA's assembler."""
    return fold([*_mlir(intake), *_llvm(intake), *_asserts(intake), *_ptxas(intake)])


def _mlir(intake: Intake) -> list[Event]:
    events = []
    for index in hits(
        intake,
        'loc("',
        "error: Failures have been detected while",
        ": error: 'tt",
        ": error: 'llvm.",
        ": error: 'arith.",
        ": error: operation ",
    ):
        line = intake.lines[index]
        found = _MLIR.search(clipped(line.text, "error: "))
        if not found:
            continue
        fields: dict[str, Any] = {"file": found["file"] or found["path"], "line": int(found["line"] or found["row"])}
        op = _OP.search(found["message"])
        if op:
            fields["op"] = op[1]
        last = line
        for _, after in following(intake, index, 4):
            failed = _FAILED_PASS.search(after.text)
            if failed:
                fields["pass"] = failed["pass"]
                last = after
                break
        if _PIPELINER in found["message"] and "pass" not in fields:
            continue
        events.append(
            make(
                EventKind.NATIVE, line, last, parser="llvm", type="MLIR error", message=found["message"], fields=fields
            )
        )
    return events


def _llvm(intake: Intake) -> list[Event]:
    lines = intake.lines
    bugs = hits(intake, _BUG)
    stacks = numbered_stacks(intake, bugs, _llvm_frame, 80)
    events = []
    for index in hits(intake, _LLVM):
        text = lines[index].text
        if text.lstrip().startswith(_LLVM) or "Error: " not in text:
            events.append(
                make(EventKind.NATIVE, lines[index], parser="llvm", type="LLVM ERROR", message=text[text.find(_LLVM) :])
            )
    for bug in bugs:
        frames = stacks[bug]
        words = [lines[bug].text.strip()]
        for at, line in following(intake, bug, 12):
            if frames and at >= frames[0][0]:
                break
            if line.text.strip():
                words.append(line.text.strip())
        events.append(
            make(
                EventKind.NATIVE,
                lines[bug],
                lines[frames[-1][0]] if frames else None,
                parser="llvm",
                type="LLVM crash",
                message="\n".join(words if frames else words[:4]),
                stacks=stack_of(intake, frames),
            )
        )
    return events


def _asserts(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, _ASSERT):
        text = clipped(intake.lines[index].text, _ASSERT)
        found = _C_ASSERT.search(text)
        if found and "block: [" not in text:
            fields = {
                **found.groupdict(),
                "line": int(found["line"]),
                "function": demangle(found["function"])[:MAX_NAME],
            }
            fields.pop("message")
            events.append(
                make(
                    EventKind.NATIVE,
                    intake.lines[index],
                    parser="llvm",
                    type="assert",
                    message=found["message"],
                    fields=fields,
                )
            )
    return events


def _ptxas(intake: Intake) -> list[Event]:
    events = []
    for index in hits(intake, *(t for t in _PTXAS if t != "ptxas /"), "ptxas /tmp"):
        text = clipped(intake.lines[index].text, "ptxas")
        found = _PTX_LINE.search(text) or _PTX.search(text)
        if found and found["type"] not in _ADVICE and "Error: " not in text[: found.start()]:
            kind = found["type"]
            name = kind if kind not in ("error", "fatal", "ptxas") else "ptxas error"
            events.append(
                make(
                    EventKind.NATIVE, intake.lines[index], parser="llvm", type=name.strip("`"), message=found["message"]
                )
            )
    return events


def _llvm_frame(text: str) -> tuple[int, Frame] | None:
    found = _STACK.match(text)
    return (
        (int(found[1]), Frame((found[3] or "??").strip()[:MAX_NAME], module=found[4], address=found[2]))
        if found
        else None
    )
