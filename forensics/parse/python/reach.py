"""Can this source line call that function? In: the code shown below a frame, the next frame's function; out: a cost. Samples:

reach("return self.model.forward(batch)", "forward")        0   the line names it
reach("runner = ModelRunner(", "__init__")                  0   a class is called
reach("return func(*args, **kwargs)", "decorate_context")   1   it may be anything
reach("self.worker.run(batch)", "load_weights")             4   a whole statement that names something else
"""

from __future__ import annotations

import re
from functools import lru_cache

from forensics.ingest.pattern import Pattern

NAMED, PLAUSIBLE, STRANGE = 0, 1, 4

_WORD = Pattern(r"[A-Za-z_]\w*")
_CALL = Pattern(r"([A-Za-z_]\w*)\s*[(\[]")
_CLASS_CALL = Pattern(r"(?:^|[^\w])(?:[a-z_]\w*\.)*[A-Z]\w*\s*\(|\bcls\(|super\(\)\.__init__|type\(")
#: names that stand for whatever was handed in
_GENERIC = frozenset(
    [
        "func",
        "fn",
        "f",
        "function",
        "callback",
        "cb",
        "target",
        "method",
        "op",
        "_op",
        "call",
        "inner",
        "wrapped",
        "run_func",
        "executor",
        "handler",
        "hook",
        "forward_call",
        "result_fn",
        "exec",
        "eval",
        "map",
        "apply",
        "submit",
        "getattr",
        "partial",
        "main_func",
        "task",
        "coro",
        "__call__",
        "next",
        "send",
    ]
)
#: functions that wrap others without being named by the caller
_WRAPPERS = frozenset(
    [
        "wrapper",
        "wrapped",
        "inner",
        "decorate_context",
        "_fn",
        "_wrapped_call_impl",
        "_call_impl",
        "__call__",
        "_inner",
        "decorator",
        "new_func",
        "wrap",
        "inner_fn",
        "wrapped_func",
        "_wrapper_fn",
        "compile_wrapper",
        "func_wrapper",
        "run_code",
        "_run_code",
        "_call_with_frames_removed",
        "_find_and_load",
        "_find_and_load_unlocked",
        "_load_unlocked",
        "exec_module",
        "__torch_function__",
        "__torch_dispatch__",
        "__getattr__",
        "__getattribute__",
        "autocast_decorator",
    ]
)
_KEYWORD_STARTS = {
    "with": ("__enter__", "__exit__", "__aenter__", "__aexit__"),
    "import": ("<module>",),
    "from": ("<module>",),
    "for": ("__iter__", "__next__", "<genexpr>"),
    "async": ("__aenter__", "__aexit__", "__anext__"),
    "del": ("__del__", "__delitem__", "__delattr__"),
}


@lru_cache(maxsize=4096)
def reach(code: str, function: str) -> int:
    """NAMED, PLAUSIBLE or STRANGE."""
    line = code.strip()
    name = function.rsplit(".", 1)[-1]
    words = _WORD.findall(line)
    first = words[0] if words else ""
    if first == "raise":
        return STRANGE if name not in words else PLAUSIBLE
    if name in words:
        return NAMED
    if name in ("__init__", "__new__", "__post_init__", "__call__") and _CLASS_CALL.search(line):
        return NAMED
    if name in _KEYWORD_STARTS.get(first, ()):
        return NAMED
    if name == "<module>":
        return PLAUSIBLE if "exec" in words or "run_path" in words else STRANGE
    if name.startswith(("<", "__")) or name in _WRAPPERS:
        return PLAUSIBLE
    calls = _CALL.findall(line)
    if any(call in _GENERIC for call in calls) or not calls:
        return PLAUSIBLE
    return (
        PLAUSIBLE
        if line.endswith(("(", "[", "{", ",", "\\", "=")) and len(calls) < 2 and not line.endswith("(")
        else STRANGE
    )


@lru_cache(maxsize=4096)
def raises(code: str, type_name: str) -> int:
    """The same for the exception line below a source line: NAMED where the line raises that class."""
    line = code.strip()
    found = re.match(r"raise\s+(?:\w+\.){0,8}([A-Za-z_]\w*)", line)
    if not found:
        return NAMED if line.startswith("assert") and type_name == "AssertionError" else PLAUSIBLE
    name = found[1]
    if name == type_name.rsplit(".", 1)[-1]:
        return NAMED
    return STRANGE if name[:1].isupper() and line[found.end() : found.end() + 1] in ("(", "") else PLAUSIBLE
