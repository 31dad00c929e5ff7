"""Logs that nobody wrote for reading: whatever comes, the parser ends, with events that lie inside of the log."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.ingest import from_text
from forensics.model import Event
from forensics.parse import python

PIECES = [
    "Traceback (most recent call last):",
    '  File "/srv/a.py", line 3, in f',
    '  File "/srv/b.py", line 99999999, in <module>',
    "    return g(x)",
    "           ^^^^",
    "ValueError: bad",
    "KeyboardInterrupt",
    "",
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
    "  [Previous line repeated 7 more times]",
    "  + Exception Group Traceback (most recent call last):",
    "  | ExceptionGroup: x (1 sub-exception)",
    "  +-+---------------- 1 ----------------",
    "    +------------------------------------",
    "╭──── Traceback (most recent call last) ────╮",
    "│ /srv/a.py:12 in main │",
    "╰────╯",
    '"""',
    "Original Traceback (most recent call last):",
    "Fatal Python error: Aborted",
    "Current thread 0x00007f1f0230d6a0 (most recent call first):",
    '  File "/srv/a.py", line 3 in f',
    'Thread 12 (idle): "MainThread"',
    "    wait (threading.py:3)",
    "E       ValueError: x",
    "src/a.py:5: ValueError",
    "[rank1]: Traceback (most recent call last):",
    '[rank1]:   File "/srv/a.py", line 3, in f',
    "[rank1]: ValueError: rank 1",
    'x: Traceback (most recent call last):\\n  File "a.py", line 3, in f\\nKeyError: 3',
    "RuntimeError: it failed: Traceback (most recent call last):",
    "ERROR 11-29 20:15:20 [core.py:515] Traceback (most recent call last):",
    'ERROR 11-29 20:15:20 [core.py:515]   File "/srv/a.py", line 3, in f',
    "Cell In[3], line 2",
    "----> 2 main(x)",
    "from user code:",
    "ray::f() (pid=1, ip=10.0.0.1)",
]


def parsed(text: str) -> list[Event]:
    return python.parse(from_text(text, anchors=python.ANCHORS))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=60))
def test_any_order_of_pieces(pieces: list[str]) -> None:
    text = "\n".join(pieces)
    intake = from_text(text, anchors=python.ANCHORS)
    last = max((line.number for line in intake.lines), default=0)
    for event in python.parse(intake):
        assert 1 <= event.span.first_line <= event.span.last_line <= last
        assert event.message is not None
        for stack in event.stacks:
            assert all(frame.function for frame in stack.frames)
            assert all(frame.log_line and 1 <= frame.log_line <= last for frame in stack.frames)


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n" * 3000,
        '  File "/srv/a.py", line 3, in f\n' * 3000,
        "ValueError: " * 200_000,
        "Traceback (most recent call last): " + 'File "a.py", line 3, in f ' * 4000,
        "Traceback (most recent call last):\\n" * 5000,
        'Traceback (most recent call last):\n  File "' + "a" * 500_000 + '", line 3, in f\nValueError: x\n',
        "Traceback (most recent call last):\n" + "x" * 1_000_000 + "\n",
        "E   " + "e" * 500_000 + "\n",
        "Extension modules: " + "a, " * 200_000,
        "  | " * 100_000
        + "\n  + Exception Group Traceback (most recent call last):\n"
        + "  +-+---------------- 1 ----------------\n" * 500,
        "((((" * 100_000 + "Error: x",
        "\n".join(f"[rank{n % 64}]: {piece}" for n in range(3000) for piece in PIECES[n % 6 : n % 6 + 1]),
    ],
    ids=range(12),
)
def test_monsters_end(text: str) -> None:
    assert isinstance(parsed(text), list)
