# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Compilers and builders of C, C++ and CUDA: gcc, clang, nvcc, hipcc, ld, ninja, cmake, make. In: an intake; out: MESSAGE events with
the tool and place. Samples:

    FAILED: [code=1] batch_decode_kernel.cuda.o                  or    FAILED: kernel.o
    /opt/venv/lib/flashinfer/data/include/decode.cuh(104): error: no suitable conversion function from "A" to "float" exists
    csrc/ops.cpp:33:10: fatal error: cublas_v2.h: No such file or directory
    /usr/bin/ld: cannot find -lcudart: No such file or directory
    nvcc fatal   : Unsupported gpu architecture 'compute_120a'
    collect2: error: ld returned 1 exit status           CMake Error at CMakeLists.txt:12 (find_package):
    ninja: build stopped: subcommand failed.
    -> MESSAGE level ERROR, message from the error on, fields {"tool": "nvcc", "file": …, "line": …}
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.rows import Row, Table

_M = EventKind.MESSAGE


def _row(literal: str, tool: str, pattern: str, after: int = 2, unless: tuple[str, ...] = ()) -> Row:
    return Row(literal, _M, pattern, level="ERROR", fields={"tool": tool}, after=after, unless=unless)


_TABLE = Table(
    "build",
    (
        _row(
            "): error: ",
            "nvcc",
            r"^\s*(?P<file>[^\s()\"][^()\"]{0,400})\((?P<line>\d+)\): (?P<message>error: .*)$",
            6,
            ('loc("',),
        ),
        _row(
            "): error #", "nvcc", r"^\s*(?P<file>[^\s()\"][^()\"]{0,400})\((?P<line>\d+)\): (?P<message>error #.*)$", 6
        ),
        _row(
            ": fatal error: ",
            "compiler",
            r"^\s*(?P<file>[^\s:]{1,400}):(?P<line>\d+):(?:\d+:)? (?P<message>fatal error: .*)$",
            4,
        ),
        _row(
            ": error: ",
            "compiler",
            r"^\s*(?P<file>[^\s:]{1,400}\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|inl|hip|cl|m|mm|S|rs|go|f90|F90)):(?P<line>\d+):(?:\d+:)? (?P<message>error: .*)$",
            6,
        ),
        _row("nvcc fatal", "nvcc", r"(?P<message>nvcc fatal +: .*)$"),
        _row("nvcc error", "nvcc", r"(?P<message>nvcc error +: .*)$"),
        _row("hipcc: error", "hipcc", r"(?P<message>hipcc: error.*)$"),
        _row("clang: error: ", "clang", r"(?P<message>clang(?:\+\+)?(?:-\d+)?: error: .*)$"),
        _row("clang++: error: ", "clang", r"(?P<message>clang\+\+(?:-\d+)?: error: .*)$"),
        _row("gcc: error: ", "gcc", r"(?P<message>gcc: (?:fatal )?error: .*)$"),
        _row("gcc: fatal error: ", "gcc", r"(?P<message>gcc: fatal error: .*)$"),
        _row("g++: error: ", "gcc", r"(?P<message>g\+\+: (?:fatal )?error: .*)$"),
        _row("g++: fatal error: ", "gcc", r"(?P<message>g\+\+: fatal error: .*)$"),
        _row("c++: fatal error: ", "gcc", r"(?P<message>c\+\+: fatal error: .*)$"),
        _row("internal compiler error: ", "gcc", r"(?P<message>internal compiler error: .*)$"),
        _row("collect2: error: ", "ld", r"(?P<message>collect2: (?:fatal )?error: .*)$"),
        _row("collect2: fatal error: ", "ld", r"(?P<message>collect2: fatal error: .*)$"),
        _row("ld: cannot find ", "ld", r"(?P<message>(?:\S{0,120}/)?ld: cannot find .*)$"),
        _row("ld: error: ", "ld", r"(?P<message>(?:ld\.lld|ld): error: .*)$"),
        _row(": undefined reference to ", "ld", r"(?P<message>undefined reference to .*)$"),
        _row("ninja: build stopped", "ninja", r"(?P<message>ninja: build stopped: .*)$"),
        _row("ninja: error: ", "ninja", r"(?P<message>ninja: error: .*)$"),
        _row("ninja: fatal: ", "ninja", r"(?P<message>ninja: fatal: .*)$"),
        _row(
            "FAILED: ",
            "ninja",
            r"^(?P<message>FAILED: (?:\[code=(?P<code>\d+)\] )?(?P<target>\S{1,400}\.(?:o|so|a|obj|cubin|ptx|pyd|stamp))\b.*)$",
            20,
        ),
        _row(
            "CMake Error",
            "cmake",
            r"(?P<message>CMake Error(?: at (?P<file>[^:]{1,300}):(?P<line>\d+)(?: \([^)]{1,80}\))?)?:?.*)$",
            6,
        ),
        _row("error: linker `", "rustc", r"(?P<message>error: linker `.*)$"),
        _row("error[E", "rustc", r"^(?P<message>error\[E(?P<code>\d{4})\]: .*)$", 4),
        _row("error: could not compile", "cargo", r"(?P<message>error: could not compile .*)$"),
        _row(
            "No space left on device",
            "os",
            r"(?P<message>[^\n]{0,400}No space left on device.*)$",
            unless=("Error: ", "OSError", "Error("),
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Errors of building, alike ones folded."""
    return _TABLE.read(intake)
