# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""The C library and the dynamic loader: heap checks, stack smashing, failed loads, missing versions. In: an intake; out: NATIVE
events for checks that abort, MESSAGE events for what could not be loaded. Samples:

    free(): invalid pointer                             malloc(): corrupted top size            double free or corruption (!prev)
    *** stack smashing detected ***: terminated         corrupted size vs. prev_size            munmap_chunk(): invalid pointer
    *** Error in `python': free(): invalid pointer: 0x000055d0 ***        (before glibc 2.26)
    -> NATIVE type "SIGABRT", message as printed, fields {"by": "glibc"}

    python: symbol lookup error: /opt/lib/libfoo.so: undefined symbol: cublasLtCreate
    python3: error while loading shared libraries: libcudart.so.12: cannot open shared object file: No such file or directory
    ./server: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./server)
    bash: line 1: nvcc: command not found
    Inconsistency detected by ld.so: dl-open.c: 745: …
    -> MESSAGE level ERROR, fields {"program": "ld.so", "library": …, "symbol": …}
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.rows import Row, Table

_PYTHON = ("NCCL INFO", "NCCL TRACE", "ImportError", "OSError", "Error: ", "Exception: ", "Warning: ")

#: what a watchdog says of the tool by which it wanted to look at a process that hangs
_HELPERS = ("failed to dump",)


def _heap(literal: str, pattern: str = "") -> Row:
    return Row(
        literal,
        EventKind.NATIVE,
        pattern
        or r"^[^\n]{0,200}?(?P<message>(?:\*\*\* Error in `[^']{1,200}': )?"
        + literal.replace("(", r"\(").replace(")", r"\)")
        + r".{0,200})$",
        type="SIGABRT",
        fields={"by": "glibc"},
        after=12,
    )


def _load(literal: str, pattern: str) -> Row:
    return Row(literal, EventKind.MESSAGE, pattern, level="ERROR", fields={"program": "ld.so"}, unless=_PYTHON)


_TABLE = Table(
    "glibc",
    (
        _heap("free(): invalid"),
        _heap("free(): double free"),
        _heap("free(): corrupted"),
        _heap("free(): too many"),
        _heap("double free or corruption"),
        _heap("malloc(): "),
        _heap("realloc(): invalid"),
        _heap("munmap_chunk(): invalid pointer"),
        _heap("corrupted size vs. prev_size"),
        _heap("corrupted double-linked list"),
        _heap("malloc_consolidate(): "),
        _heap("sysmalloc: Assertion"),
        _heap("tcache_thread_shutdown(): "),
        _heap("*** stack smashing detected ***", r"(?P<message>\*\*\* stack smashing detected \*\*\*.{0,120})"),
        _heap("*** buffer overflow detected ***", r"(?P<message>\*\*\* buffer overflow detected \*\*\*.{0,120})"),
        _heap("*** longjmp causes uninitialized stack frame", r"(?P<message>\*\*\* longjmp causes.{0,120})"),
        _heap("pure virtual method called", r"(?P<message>pure virtual method called)"),
        _heap(
            "The futex facility returned an unexpected error code",
            r"(?P<message>The futex facility returned an unexpected error code.{0,40})",
        ),
        _load(
            "symbol lookup error: ",
            r"(?P<message>symbol lookup error: (?P<library>[^\s:]{1,300}): undefined symbol: (?P<symbol>[^\s,]{1,600}).*)$",
        ),
        _load(
            "error while loading shared libraries: ",
            r"(?P<message>error while loading shared libraries: (?P<library>[^\s:]{1,300}): .*)$",
        ),
        _load(
            "cannot open shared object file",
            r"(?P<message>(?P<library>[^\s:'\"(]{1,300}): cannot open shared object file.*)$",
        ),
        _load(
            "' not found (required by ",
            r"(?P<message>(?P<library>[^\s:]{1,300}): version `(?P<symbol>[^']{1,80})' not found \(required by (?P<needed_by>[^)]{1,300})\))",
        ),
        _load("Inconsistency detected by ld.so", r"(?P<message>Inconsistency detected by ld\.so.*)$"),
        _load(
            "undefined symbol: ",
            r"(?P<message>(?P<library>[^\s:]{1,300}): undefined symbol: (?P<symbol>[^\s,]{1,600}).*)$",
        ),
        Row(
            "pthread_create failed for thread ",
            EventKind.MESSAGE,
            r"(?P<message>OpenBLAS blas_thread_init: pthread_create failed for thread \d{1,6} of \d{1,6}:.*)$",
            level="ERROR",
            fields={"program": "openblas"},
        ),
        Row(
            "command not found: ",
            EventKind.MESSAGE,
            r"(?P<message>\w{2,8}: command not found: (?P<command>\S{1,120}))",
            level="ERROR",
            fields={"program": "shell"},
        ),
        Row(
            ": command not found",
            EventKind.MESSAGE,
            r"(?P<message>(?:\S{1,80}: )?(?:line \d+: )?(?P<command>[^\s:]{1,120}): command not found)",
            level="ERROR",
            fields={"program": "shell"},
            unless=_HELPERS,
        ),
        Row(
            "cannot execute binary file",
            EventKind.MESSAGE,
            r"(?P<message>.{0,200}cannot execute binary file.*)$",
            level="ERROR",
            fields={"program": "shell"},
        ),
        Row(
            "exec format error",
            EventKind.MESSAGE,
            r"(?P<message>.{0,200}exec format error.*)$",
            level="ERROR",
            fields={"program": "shell"},
        ),
        Row(
            "fork: retry: ",
            EventKind.MESSAGE,
            r"(?P<message>\S{0,80}fork: retry: .*)$",
            level="ERROR",
            fields={"program": "shell"},
        ),
        Row(
            "Cannot allocate memory",
            EventKind.MESSAGE,
            r"(?P<message>[^\n]{0,300}Cannot allocate memory.*)$",
            level="ERROR",
            fields={"program": "os"},
            unless=_PYTHON,
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Events of libc, ld.so and shells, alike ones folded."""
    return _TABLE.read(intake)
