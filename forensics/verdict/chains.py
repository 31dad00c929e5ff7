"""Which exception of a chain started it. In: an `ExceptionChain`; out: its root, and whose words tell the user. Samples:

KeyError: 'cosine_x' in get() · during handling of it: ValueError "unknown scheduler 'cosine_x'" raised in get() itself
-> the KeyError is the root, and the ValueError says to a person what it means
KeyError: (4096, 'bf16') in plan() · during handling of it: OutOfMemoryError in build(), which plan() called
-> the OutOfMemoryError is the root: plan() looked whether it had one, it had none, and making one failed
AcceleratorError in step() · during handling of it: AttributeError 'NoneType' … in close(), which step() called
-> the AcceleratorError is the root: the handler's own bug came after it

"The direct cause" is what the program says (raise … from …), and the innermost exception is then the root. "During handling" is only
what Python saw. The exception that was handled is the root there, too, unless it was no failure: an end of iteration, or a look-up,
import or attribute that was probed for close to its handler, whose handler went on with other work in which the next one was raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from forensics.model.stack import ExceptionChain, Frame, RaisedException

#: links that JAX puts into a chain to say that frames were left out
_MARKERS = ("SimplifiedTraceback", "UnfilteredStackTrace", "JaxStackTraceBeforeTransformation")
#: how Python's own loops and queues say that there is no more: never a failure by itself
_ENDS = frozenset(("StopIteration", "StopAsyncIteration", "Empty", "QueueEmpty"))
#: what a program expects where it looks whether something is there
_PROBES = frozenset(
    ("KeyError", "IndexError", "AttributeError", "ImportError", "ModuleNotFoundError", "FileNotFoundError", "NotImplementedError")
)
#: bugs, which a handler may have as well as any other code
_BUGS = frozenset(("AttributeError", "NameError", "UnboundLocalError", "TypeError"))
#: what only hands an exception on from another process says
_PASSED_ON = ("Caught ", "ray::", "\n-- Process ", "-- Process ")
#: how many calls a probe takes at most; an import takes as many as it likes
_NEAR = 3
_QUOTED = 4


def root_of(chain: ExceptionChain) -> RaisedException:
    """The exception that started it."""
    links = [link for link in chain.exceptions if not link.type.endswith(_MARKERS)] or list(chain.exceptions)
    place = 0
    while place + 1 < len(links) and links[place + 1].link == "context" and _went_on(links[place], links[place + 1]):
        place += 1
    return links[place]


def told_by(chain: Sequence[RaisedException], root_type: str | None, root_message: str) -> tuple[str, str] | None:
    """Type and message of the exception that says to a person what the root means, where the root is a look-up that failed: the
    next one of the chain. None where the root speaks for itself."""
    if _name(root_type or "") not in _PROBES | _ENDS:
        return None
    for inner, outer in pairwise(chain):
        if inner.type == root_type and inner.message.startswith(root_message[:60]):
            said = outer.link in ("context", "cause") and len(outer.message) > len(inner.message) and _name(outer.type) not in _BUGS
            said = said and not outer.message.startswith(_PASSED_ON) and not _name(outer.type).startswith("RayTaskError")
            return (outer.type, outer.message) if said else None
    return None


def _name(type_: str) -> str:
    return type_.rsplit(".", 1)[-1]


def _went_on(inner: RaisedException, outer: RaisedException) -> bool:
    """True where the inner exception was no failure, and the outer one came up in what the handler did instead."""
    name = _name(inner.type)
    if _names(outer, inner):
        return False
    if name in _ENDS or _slept(inner.frames, outer):
        return True
    if name not in _PROBES or _name(outer.type) in _BUGS:
        return False
    if len(inner.frames) > _NEAR and name not in ("ImportError", "ModuleNotFoundError"):
        return False
    return _deeper(inner.frames, outer.frames)


def _names(outer: RaisedException, inner: RaisedException) -> bool:
    """True where the outer exception tells of the inner one in its own words."""
    said = inner.message.split("\n", 1)[0].strip().strip("'\"")
    return (len(said) >= _QUOTED and said[:80] in outer.message) or _name(inner.type) in outer.message


def _slept(handled: Sequence[Frame], outer: RaisedException) -> bool:
    """True for a Ctrl-C that met who had caught the exception asleep: it was about to try again."""
    if _name(outer.type) != "KeyboardInterrupt" or not handled or not outer.frames:
        return False
    last = outer.frames[-1]
    return (last.file, last.function) == (handled[0].file, handled[0].function) and "sleep(" in (last.marked or last.code or "")


def _deeper(handled: Sequence[Frame], raised: Sequence[Frame]) -> bool:
    """True where the frame that handled one exception had called on before the next was raised. A traceback begins at the frame
    that caught it."""
    if not handled or not raised:
        return False
    catcher = (handled[0].file, handled[0].function)
    places = [place for place, frame in enumerate(raised) if (frame.file, frame.function) == catcher]
    return bool(places) and places[-1] < len(raised) - 1
