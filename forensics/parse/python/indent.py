"""Tracebacks that stand indented as a whole, moved to the left. In: the items of a lane; out: nothing, their lines are replaced. Sample:

      actor aborted due to: Traceback (most recent call last):          (some 100 lines further to the right than Python prints it)
        File "/srv/job/actors/mesh.py", line 1302, in handle
          from engine import Engine
      ModuleNotFoundError: No module named 'engine'

torch's elastic agent, Monarch's supervisors and test runners quote tracebacks so. What was raised tells how far: a source line of
a traceback and the exception line of an indented one look alike otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.parse.python.lanes import Item
from forensics.parse.python.shapes import Kind, kind_of, looks_raised

#: lines below a header within which its exception line is looked for, and the furthest right that one may stand
_WITHIN, _FURTHEST = 400, 40


def dedent(items: Sequence[Item]) -> None:
    """Takes the indentation off every traceback whose frames and exception line show it."""
    end = 0
    for at, item in enumerate(items[:-1]):
        if item.kind is not Kind.HEAD or items[at + 1].kind is not Kind.FRAME or at < end:
            continue
        text = items[at + 1].line.text
        margin = " " * (len(text) - len(text.lstrip(" ")) - 2)
        if margin and len(margin) <= _FURTHEST and _raised(items, at + 1, margin):
            end = _shift(items, at + 1, margin)


def _raised(items: Sequence[Item], first: int, margin: str) -> bool:
    """True where an exception line stands at the margin before any line stands left of it, and before the next traceback begins."""
    for item in items[first : first + _WITHIN]:
        if item.kind is Kind.HEAD:
            return False
        text = item.line.text
        if not text.strip():
            continue
        if not text.startswith(margin):
            return False
        if text[len(margin)] != " " and looks_raised(text[len(margin) :]):
            return True
    return False


def _shift(items: Sequence[Item], first: int, margin: str) -> int:
    """Moves the lines from one on to the left, as far as they are indented; returns where it ended."""
    for at in range(first, len(items)):
        item = items[at]
        if item.line.text.startswith(margin):
            item.line = item.line._replace(text=item.line.text[len(margin) :])
            item.kind = kind_of(item.line.text)
        elif item.line.text.strip():
            return at
    return len(items)
