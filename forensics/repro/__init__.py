"""Rebuilds the failing op from a log, runs it in a child and says honestly whether it reproduced. Public verbs: `plan`, `plan_report`,
`script`, `run`, `reproduce`, `compare`, `minimize`, `compile_only`, `issue`, `contract`."""

from __future__ import annotations

from typing import Any

__all__ = [
    "compare",
    "compile_only",
    "contract",
    "issue",
    "minimize",
    "plan",
    "plan_report",
    "reproduce",
    "run",
    "script",
]

_HOMES = {
    "plan": ("planning", "plan"),
    "plan_report": ("planning", "plan_report"),
    "contract": ("planning", "contract"),
    "script": ("render", "render"),
    "run": ("running", "run"),
    "reproduce": ("running", "reproduce"),
    "compare": ("comparing", "compare"),
    "minimize": ("minimizing", "minimize"),
    "compile_only": ("compiling", "compile_only"),
    "issue": ("bug_report", "issue"),
}


def __getattr__(name: str) -> Any:
    """Loads a verb when it is asked for: a report needs only the plan."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
