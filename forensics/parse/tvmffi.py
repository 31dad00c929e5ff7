"""tvm and tvm-ffi (FlashInfer, mlc, tilelang): failed checks and the segfault handler. In: an intake; out: NATIVE and
FATAL_SIGNAL events. Samples:

    !!!!!!! TVM FFI encountered a Segfault !!!!!!!
    !!!!!!! Segfault encountered !!!!!!!
      File "./csrc/runner.cu", line 264, in flashinfer::TrtllmGenBatchedGemmRunner::run(...)
      File "<unknown>", in ffi::call
    -> FATAL_SIGNAL type "SIGSEGV" with those frames

    Check failed: (status == cudaSuccess) is false: launch failed
    [20:15:45] /src/runtime/cuda/cuda_module.cc:110: InternalError: Check failed: ret == 0 (-1 vs. 0) : CUDAError: …
    Stack trace:
      0: tvm::runtime::detail::LogFatal::Entry::Finalize()
    -> NATIVE type "InternalError"

A Check failure inside a Python traceback's message belongs to the Python parser and gives no event here.
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.stack import Frame
from forensics.parse.cxxnames import MAX_NAME
from forensics.parse.reading import Lazy, hits, make, numbered_stacks, run_of, stack_of

_SEGFAULT = ("!!!!!!! Segfault encountered", "encountered a Segfault !!!!!!!")
_ERROR = "Error: Check failed:"

ANCHORS: tuple[Anchor, ...] = (
    *(Anchor(text.encode(), 1, 80, "tvmffi") for text in _SEGFAULT),
    Anchor(_ERROR.encode(), 2, 60, "tvmffi"),
)

_FILE = Lazy(r'^\s*File "([^"]{1,400})"(?:, line (\d+))?, in (.+)$')
_CHECK = Lazy(
    r"^(?:\[\d\d:\d\d:\d\d\] )?(?P<file>\S{1,400}):(?P<line>\d+): (?P<type>\w{0,40}Error): (?P<message>Check failed:.*)$"
)
_NUMBERED = Lazy(r"^\s{1,4}(?:\[bt\] )?\(?(\d{1,3})\)?:? (\S.*)$")


def parse(intake: Intake) -> list[Event]:
    """Events of tvm's own reporting."""
    lines = intake.lines
    events: list[Event] = []
    for index in hits(intake, *_SEGFAULT):
        frames = run_of(intake, index, _file_frame, 80, patience=1)
        events.append(
            make(
                EventKind.FATAL_SIGNAL,
                lines[index],
                lines[frames[-1][0]] if frames else None,
                parser="tvmffi",
                type="SIGSEGV",
                message=lines[index].text.strip(" !"),
                stacks=stack_of(intake, frames),
                fields={"handler": "tvm-ffi"},
            )
        )
    checks = [i for i in hits(intake, _ERROR) if _CHECK.match(lines[i].text)]
    stacks = numbered_stacks(intake, checks, _numbered, 60)
    for index in checks:
        found = _CHECK.match(lines[index].text)
        frames = stacks[index]
        if found:
            events.append(
                make(
                    EventKind.NATIVE,
                    lines[index],
                    lines[frames[-1][0]] if frames else None,
                    parser="tvmffi",
                    type=found["type"],
                    message=found["message"],
                    stacks=stack_of(intake, frames),
                    fields={"file": found["file"], "line": int(found["line"])},
                )
            )
    return events


def _file_frame(text: str) -> Frame | None:
    found = _FILE.match(text)
    if not found:
        return None
    known = found[1] not in ("<unknown>", "")
    return Frame(
        found[3].strip()[:MAX_NAME],
        found[1] if known else None,
        int(found[2]) if known and found[2] else None,
    )


def _numbered(text: str) -> tuple[int, Frame] | None:
    found = _NUMBERED.match(text)
    return (int(found[1]), Frame(found[2].strip()[:MAX_NAME])) if found else None
