"""Lines of native stacks, one reader a shape. In: a line's text; out: (number, Frame), or a Frame where the shape has no
numbers, or None. Samples:

    frame #1: c10d::ProcessGroupNCCL::Watchdog::run() + 0x157 (0x7f1389d093b7 in /usr/lib/libtorch_cuda.so)         c10
    #1  0x00007c3aa19a25c4 in ggml_abort () from /opt/lib/libggml-base.so                                             gdb
     1  /opt/ucx/lib/libucs.so.0(ucs_handle_error+0x2cc) [0x40b151579e0e]                                             ucx
     1 0x0000000000012be9 uploadProxyOps()  /src/nccl/src/enqueue.cc:1131                                             ucx
    [ 1] /lib/libc.so.6(abort+0xd3)[0x7f00]                                                                           Open MPI
    1       0x7c6dd0a58b16 tensorrt_llm::common::throwRuntimeError(char const*, int) + 97                             TensorRT-LLM
    /usr/lib/libggml.so(ggml_abort+0x11f) [0x7fa925ea2877]                                                            glibc backtrace()
        @     0x71713c459978  absl::log_internal::LogMessage::Flush()                                                 glog, absl
     3# TRITONSERVER_ServerInferAsync in /opt/tritonserver/lib/libtritonserver.so                                    boost
    #0  0x00007ffff32960ce abort (libc.so.6 + 0x8d0ce)                                                               systemd-coredump
    #2 buggy from train.py:8                                                                                          torch captured
"""

from __future__ import annotations

from forensics.model.stack import Frame
from forensics.parse.cxxnames import MAX_NAME
from forensics.parse.reading import Lazy

_C10 = Lazy(r"(?:^|\s)frame #(\d{1,4}): (.{1,5000}?)(?: \+ (0x[0-9a-f]+|\d+))? \((0x[0-9a-f]+) in ([^)]{1,500})\)")
_C10_BARE = Lazy(r"^\s*frame #(\d{1,4}): (.+)$")
_GDB = Lazy(r"^#(\d{1,4})\s+(?:(0x[0-9a-f]+) in )?(.+)$")
_GDB_AT = Lazy(r" at ([^ ]{1,400}):(\d+)$")
_GDB_FROM = Lazy(r" from ([^ ]{1,400})$")
_LIB = r"(?P<module>[^\s()\[\]]{1,400})\((?P<symbol>[^()\s]{0,4000})\)"
_UCX = Lazy(
    r"^\s{0,8}(?P<number>\d{1,3}) +(?:"
    + _LIB
    + r" ?\[(?P<address>0x[0-9a-f]+)\]|(?P<bare>0x[0-9a-f]{6,}) (?P<rest>\S.*)|\[(?P<only>0x[0-9a-f]+)\])\s*$"
)
_MPI = Lazy(r"\[ ?(?P<number>\d{1,3})\] (?:" + _LIB + r" ?)?\[(?P<address>0x[0-9a-f]+)\]\s*$")
_MPI_NAMED = Lazy(r"\[ ?(\d{1,3})\] (\S.{0,2000}?) ?\[(0x[0-9a-f]+)\]\s*$")
_TRT = Lazy(r"^\s*(\d{1,3}) {1,20}(0x[0-9a-f]{6,}) (.+?)(?: \+ (\d+))?(?: \[0x[0-9a-f]+\])?\s*$")
_TRT_LIB = Lazy(r"^\s*(\d{1,3}) {1,20}(?:(0x[0-9a-f]{6,}) )?([^\s()]{1,400})\(([^()\s]{0,2000})\) \[(0x[0-9a-f]+)\]")
_GLIBC = Lazy(r"^\s*" + _LIB + r" ?\[(?P<address>0x[0-9a-f]+)\]\s*$")
_GLOG = Lazy(r"^\s*(?:PC: )?@\s+(0x[0-9a-f]+)\s+(?:\((?:unknown|nil|un)\)|(?:(\d+)  )?(\S.*))?\s*$")
_COREDUMP = Lazy(r"^\s*#(\d{1,4})\s+(0x[0-9a-f]+) (\S.{0,2000}?) \((\S{1,300}) \+ 0x[0-9a-f]+\)\s*$")
_BOOST = Lazy(r"^\s*(\d{1,3})# (\S.{0,2000}?) in (\S{1,400})\s*$")
_CAPTURED = Lazy(r"^\s*#(\d{1,4}) (.{1,2000}) from (\S{1,600}):(\d+)\s*$")


def c10_frame(text: str) -> tuple[int, Frame] | None:
    """`frame #N: name + 0xoff (0xaddr in lib)`, or without an address where a build prints none."""
    if "frame #" not in text:
        return None
    found = _C10.search(text)
    if found:
        return int(found[1]), Frame(_name(found[2]), module=found[5], address=found[4])
    bare = _C10_BARE.match(text)
    return (int(bare[1]), Frame(_name(bare[2]))) if bare else None


def gdb_frame(text: str) -> tuple[int, Frame] | None:
    """`#N  [0xaddr in ]name (args) [at file:line | from lib]`."""
    if not text.startswith("#"):
        return None
    found = _GDB.match(text)
    if not found:
        return None
    rest = found[3].strip()
    file, line, module = None, None, None
    at = _GDB_AT.search(rest)
    if at:
        file, line, rest = at[1], int(at[2]), rest[: at.start()]
    else:
        lib = _GDB_FROM.search(rest)
        if lib:
            module, rest = lib[1], rest[: lib.start()]
    if not found[2] and not (at or module) and "(" not in rest:
        return None
    return int(found[1]), Frame(_name(_without_arguments(rest)), file, line, module=module, address=found[2])


def _without_arguments(text: str) -> str:
    """`wait4 (pid=1, …)` -> `wait4`: cut at the first " (" outside of template brackets."""
    depth = 0
    for at, char in enumerate(text[:4000]):
        if char == "<":
            depth += 1
        elif char == ">" and depth:
            depth -= 1
        elif char == "(" and depth == 0 and at and text[at - 1] == " ":
            return text[: at - 1]
    return text


def ucx_frame(text: str) -> tuple[int, Frame] | None:
    """UCX and UCS handlers: with library and offset, or with function and source file, or an address alone."""
    found = _UCX.match(text)
    if not found:
        return None
    number = int(found["number"])
    if found["module"]:
        return number, Frame(_symbol(found["symbol"]), module=found["module"], address=found["address"])
    if found["only"]:
        return number, Frame("??", address=found["only"])
    name, _, place = found["rest"].strip().rpartition("  ")
    name, place = (name.strip(), place.strip()) if name else (place.strip(), "")
    file, _, line = place.rpartition(":")
    known = bool(file) and file != "???" and line.isdigit()
    return number, Frame(
        _name(name.removesuffix("()")), file if known else None, int(line) if known else None, address=found["bare"]
    )


def mpi_frame(text: str) -> tuple[int, Frame] | None:
    """Open MPI: `[ 1] lib(name+0xoff)[0xaddr]`, the number alone before an address, or a bare name."""
    found = _MPI.search(text)
    if found:
        return int(found["number"]), Frame(
            _symbol(found["symbol"] or ""), module=found["module"], address=found["address"]
        )
    named = _MPI_NAMED.search(text)
    return (int(named[1]), Frame(_name(named[2]), address=named[3])) if named else None


def trtllm_frame(text: str) -> tuple[int, Frame] | None:
    """TensorRT-LLM: `1   0x7c… name + 97` and `1   0x7c… lib(+0xoff) [0x…]`."""
    lib = _TRT_LIB.match(text)
    if lib:
        return int(lib[1]), Frame(_symbol(lib[4]), module=lib[3], address=lib[2] or lib[5])
    found = _TRT.match(text)
    return (int(found[1]), Frame(_name(found[3]), address=found[2])) if found else None


def glibc_frame(text: str) -> Frame | None:
    """backtrace_symbols: `lib(name+0xoff) [0xaddr]`."""
    if "[0x" not in text:
        return None
    found = _GLIBC.match(text)
    return Frame(_symbol(found["symbol"]), module=found["module"], address=found["address"]) if found else None


def glog_frame(text: str) -> Frame | None:
    """glog and absl: `@     0xaddr  name`."""
    if "@" not in text[:40]:
        return None
    found = _GLOG.match(text)
    return Frame(_name(found[3]) if found[3] else "(unknown)", address=found[1]) if found else None


def coredump_frame(text: str) -> tuple[int, Frame] | None:
    """systemd-coredump: `#0  0x7fff abort (libc.so.6 + 0x8d0ce)`."""
    found = _COREDUMP.match(text)
    return (int(found[1]), Frame(_name(found[3]), module=found[4], address=found[2])) if found else None


def boost_frame(text: str) -> tuple[int, Frame] | None:
    """boost::stacktrace: ` 3# name in lib`, ` 0# 0x000055d0 in tritonserver`."""
    found = _BOOST.match(text)
    if not found:
        return None
    bare = found[2].startswith("0x")
    return int(found[1]), Frame("??" if bare else _name(found[2]), module=found[3], address=found[2] if bare else None)


def captured_frame(text: str) -> tuple[int, Frame] | None:
    """torch's own captured tracebacks: `#2 name from file.py:8`, Python or C++, innermost first."""
    found = _CAPTURED.match(text)
    return (int(found[1]), Frame(_name(found[2]), found[3], int(found[4]))) if found else None


def _symbol(symbol: str) -> str:
    """`name+0xoff` -> the name; "??" where only an offset is known."""
    name = symbol.partition("+")[0] if "+" in symbol else symbol
    return _name(name) if name else "??"


def _name(name: str) -> str:
    """As printed: what a mangled name means stands in the frame's `code` (reading.located)."""
    return name.strip()[:MAX_NAME]
