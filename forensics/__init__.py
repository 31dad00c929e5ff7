"""GPU crash forensics: a crash log in, a verdict with its evidence out. Public API, loaded when asked for:

    import forensics
    incident = forensics.analyze(["run/"], gpu="sm_120")
    print(incident.verdict.category, incident.verdict.title)
    print(forensics.render(incident, "markdown"))

`analyze`, `Incident`, `Verdict`, `Signature`, `load_signatures`, `render`, `reproduce`, `ForensicsError`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forensics.errors import ForensicsError
    from forensics.match import Signature, load_signatures
    from forensics.model.verdict import Incident, Verdict
    from forensics.pipeline import analyze
    from forensics.report import render
    from forensics.repro import reproduce

__all__ = [
    "ForensicsError",
    "Incident",
    "Signature",
    "Verdict",
    "analyze",
    "load_signatures",
    "render",
    "reproduce",
]

_HOME = {
    "ForensicsError": "forensics.errors",
    "Incident": "forensics.model.verdict",
    "Signature": "forensics.match",
    "Verdict": "forensics.model.verdict",
    "analyze": "forensics.pipeline",
    "load_signatures": "forensics.match",
    "render": "forensics.report",
    "reproduce": "forensics.repro",
}


if not TYPE_CHECKING:  # for a type checker a name that is not listed is wrong

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'forensics' has no attribute {name!r}")
        import importlib

        found: object = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
