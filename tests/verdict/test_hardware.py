"""One row a fault and device."""

from __future__ import annotations

from .conftest import Told

FALLEN = """\
[1234890.222] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[1234890.223] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
"""


def test_a_device_with_and_without_its_function_is_one(told: Told) -> None:
    rows = told(FALLEN).hardware
    assert [(row.code, row.device) for row in rows] == [(79, "0000:3b:00")]
