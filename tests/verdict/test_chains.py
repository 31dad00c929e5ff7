"""`except A: raise B`: which of the two started it."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Incident

from .conftest import Told

HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"
BECAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
TOP = ("run.py", "<module>", "main()")
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 47.54 GiB of which 1.10 GiB is free."
ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


def raised(what: str, *frames: tuple[str, str, str]) -> str:
    lines = [f'  File "/j/{file}", line {7 + n}, in {function}\n    {code}\n' for n, (file, function, code) in enumerate(frames)]
    return "Traceback (most recent call last):\n" + "".join(lines) + what + "\n"


def root(incident: Incident) -> str | None:
    assert incident.primary is not None
    return (incident.primary.root_type or "").rsplit(".", 1)[-1]


PLAN = ("cache.py", "plan", "return self._plans[key]")
MAKE = (("cache.py", "plan", "p = self._make(key)"), ("cache.py", "_make", "buf = torch.empty(n)"))
#: (what was handled, what was raised then, root, category)
CASES = {
    "a miss, and making it anew fails": (raised("KeyError: (4096, 'bf16')", PLAN), raised(FULL, TOP, *MAKE), "OutOfMemoryError", Category.OOM_GPU),
    "the end of a loader, and its next start fails": (
        raised("StopIteration", ("loop.py", "batch", "return next(self.it)"), ("loader.py", "__next__", "data = self._next()"), ("loader.py", "_next", "raise StopIteration")),
        raised("OSError: [Errno 12] Cannot allocate memory", TOP, ("loop.py", "batch", "self.it = iter(self.loader)"), ("loader.py", "__iter__", "fork()")),
        "OSError",
        Category.OOM_HOST,
    ),
    "an empty queue, told at once": (
        raised("_queue.Empty", ("feed.py", "take", "return q.get(timeout=60)")),
        raised("RuntimeError: No space left on device", TOP, ("feed.py", "take", "raise RuntimeError(self.why)")),
        "RuntimeError",
        Category.STORAGE,
    ),
    "an optional module, and the one in its place is broken": (
        raised("ModuleNotFoundError: No module named 'fast_attention'", ("attn.py", "<module>", "import fast_attention")),
        raised("ImportError: libcublasLt.so.13: cannot open shared object file: No such file or directory", TOP, ("attn.py", "<module>", "import slow"), ("slow.py", "<module>", "import _slow")),
        "ImportError",
        Category.MISSING_LIBRARY,
    ),
    "a look-up that is told to the user": (
        raised("KeyError: 'cosine_x'", ("reg.py", "get", "return REG[name]")),
        raised("ValueError: unknown scheduler 'cosine_x'; choose one of ['cosine', 'linear']", TOP, ("reg.py", "get", "raise ValueError(")),
        "KeyError",
        Category.USER_CODE,
    ),
    "the error is told by name": (
        raised("OSError: [Errno 5] Input/output error: '/d/w.bin'", ("load.py", "load", "return open(p)")),
        raised("RuntimeError: cannot load: [Errno 5] Input/output error: '/d/w.bin'", TOP, ("load.py", "load", "raise RuntimeError(")),
        "OSError",
        Category.STORAGE,
    ),
    "a bug of the handler": (
        raised(ILLEGAL, ("loop.py", "step", "loss.backward()")),
        raised("AttributeError: 'NoneType' object has no attribute 'close'", TOP, ("loop.py", "step", "self.finish()"), ("loop.py", "finish", "self.writer.close()")),
        "AcceleratorError",
        Category.ILLEGAL_MEMORY_ACCESS,
    ),
    "a bug of the handler after a look-up": (
        raised("KeyError: 'w'", ("loop.py", "step", "return self.d['w']")),
        raised("AttributeError: 'NoneType' object has no attribute 'close'", TOP, ("loop.py", "step", "self.finish()"), ("loop.py", "finish", "self.writer.close()")),
        "KeyError",
        Category.USER_CODE,
    ),
    "a look-up deep in the work, and the handler's clean-up finds no memory": (
        raised("KeyError: 'w'", ("run.py", "main", "train()"), ("a.py", "train", "step()"), ("b.py", "step", "read()"), ("c.py", "read", "d['w']")),
        raised(FULL, TOP, ("run.py", "main", "save()"), ("run.py", "save", "torch.empty(n)")),
        "KeyError",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_was_handled_and_what_was_raised_then(told: Told, case: str) -> None:
    handled, then, started, category = CASES[case]
    incident = told(handled + HANDLING + then)
    assert root(incident) == started
    assert incident.primary is not None and incident.primary.type is not None and incident.primary.type in then
    if category is not None:
        assert incident.verdict.category is category


def test_what_the_program_calls_the_cause_is_the_cause(told: Told) -> None:
    handled, then, *_ = CASES["a miss, and making it anew fails"]
    assert root(told(handled + BECAUSE + then)) == "KeyError"


def test_the_title_says_what_a_failed_look_up_means(told: Told) -> None:
    handled, then, *_ = CASES["a look-up that is told to the user"]
    for link in (HANDLING, BECAUSE):
        assert "unknown scheduler 'cosine_x'" in told(handled + link + then).verdict.title
    handled, then, *_ = CASES["a bug of the handler after a look-up"]
    assert "KeyError: 'w'" in told(handled + HANDLING + then).verdict.title


def test_what_hands_an_exception_on_does_not_tell_it(told: Told) -> None:
    inner = 'Traceback (most recent call last):\n  File "/home/me/data.py", line 35, in __getitem__\n    return self.rows[i]\nIndexError: list index out of range\n'
    outer = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n    batch = next(rows)\n'
        "IndexError: Caught IndexError in DataLoader worker process 25.\nOriginal "
    )
    incident = told(outer + inner)
    assert "list index out of range" in incident.verdict.title and "Caught" not in incident.verdict.title
