"""Each shape of a stack line, and lines that look like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forensics.model.source import LogLine
from forensics.model.stack import Frame
from forensics.parse import frames
from forensics.parse.reading import located


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (frames.c10_frame, "frame #1: c10d::run() + 0x157 (0x7f13 in /lib/libtorch.so)", (1, Frame("c10d::run()", module="/lib/libtorch.so", address="0x7f13"))),
        (frames.c10_frame, "frame #0: c10::Error::Error() from ??:0", (0, Frame("c10::Error::Error() from ??:0"))),
        (frames.gdb_frame, "#1  0x00007f in foo<int (char)> (a=1) at a.cc:12", (1, Frame("foo<int (char)>", "a.cc", 12, address="0x00007f"))),
        (frames.gdb_frame, "#2  0x00007f in ?? () from /lib/libcuda.so.1", (2, Frame("??", module="/lib/libcuda.so.1", address="0x00007f"))),
        (frames.ucx_frame, " 1 0x0000000000012be9 upload()  /src/a.cc:1131", (1, Frame("upload", "/src/a.cc", 1131, address="0x0000000000012be9"))),
        (frames.ucx_frame, " 4 0x0000000000585e3c cuEGLApiInit()  ???:0", (4, Frame("cuEGLApiInit", address="0x0000000000585e3c"))),
        (frames.ucx_frame, " 0  /lib/libucs.so.0(handle+0x2cc) [0x4000]", (0, Frame("handle", module="/lib/libucs.so.0", address="0x4000"))),
        (frames.mpi_frame, "[n7:1] [ 3] /lib/libc.so.6(abort+0xd3)[0x7f00]", (3, Frame("abort", module="/lib/libc.so.6", address="0x7f00"))),
        (frames.trtllm_frame, "3       0x7c6dd0a5bb10 a::b(int) + 1207", (3, Frame("a::b(int)", address="0x7c6dd0a5bb10"))),
        (frames.glibc_frame, "/usr/bin/server() [0x40a3db]", Frame("??", module="/usr/bin/server", address="0x40a3db")),
        (frames.glog_frame, "    @     0x71a5  absl::Flush()", Frame("absl::Flush()", address="0x71a5")),
        (frames.glog_frame, "    @ 0x71a5 (unknown)", Frame("(unknown)", address="0x71a5")),
        (frames.boost_frame, " 2# Execute in /opt/libx.so", (2, Frame("Execute", module="/opt/libx.so"))),
        (frames.captured_frame, "#2 buggy from train.py:8", (2, Frame("buggy", "train.py", 8))),
        (frames.c10_frame, "picture frame # 3 fell", None),
        (frames.gdb_frame, "#1  of the list", None),
        (frames.ucx_frame, " 3 items (of 7) left", None),
        (frames.ucx_frame, "12 0x10 short", None),
        (frames.mpi_frame, "[3] tensors of shape [0x40]x", None),
        (frames.trtllm_frame, "1 of 3", None),
        (frames.glibc_frame, "call(arg) [0]", None),
        (frames.glog_frame, "mail me @ home", None),
        (frames.boost_frame, "C# in depth", None),
        (frames.captured_frame, "#2 is far from here", None),
    ],
)  # fmt: skip
def test_shape(read: Callable[[str], Any], text: str, expected: Any) -> None:
    assert read(text) == expected


def test_a_mangled_name_stays_and_its_meaning_stands_beside_it() -> None:
    line = LogLine(0, 7, "", "")
    found = located(Frame("_ZN13llama_context6decodeERK11llama_batch"), line)
    assert (found.function, found.code, found.log_line) == (
        "_ZN13llama_context6decodeERK11llama_batch",
        "llama_context::decode(llama_batch const&)",
        7,
    )
