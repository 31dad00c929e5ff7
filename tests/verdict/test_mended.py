"""Two runs in one file of which the first could not be compiled."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category

from .conftest import Told

BROKEN = """\
Traceback (most recent call last):
  File "/srv/app/train.py", line 20, in <module>
    from net import Net
  File "/srv/app/net.py", line 63
    def record(self):
                     ^
IndentationError: unindent does not match any outer indentation level
"""
FULL = """\
Traceback (most recent call last):
  File "/srv/app/{}", line 210, in <module>
    main()
  File "/srv/app/{}", line 180, in main
    torch.save(state, path)
OSError: [Errno 28] No space left on device
"""


def test_what_came_further_in_the_same_program_is_another_run(told: Told) -> None:
    incident = told(BROKEN + FULL.format("train.py", "train.py"))
    assert incident.verdict.category is Category.STORAGE
    assert any("unindent" in other.title for other in incident.others)


@pytest.mark.parametrize("below", ["", FULL.format("clean.py", "clean.py")])
def test_another_program_says_nothing_of_it(told: Told, below: str) -> None:
    incident = told(BROKEN + below)
    assert not incident.others and {"IndentationError"} <= {failure.type for failure in incident.failures}
