"""The vocabulary: frozen records, standard library only. Import from the submodules or from here."""

from forensics.model.event import Collective, Event, EventKind, HardwareFault, ProcessExit
from forensics.model.knowledge import Facts, FamilyUse, Gpu, KernelFamily, KernelName, Setting, SoftwareVersion
from forensics.model.source import (
    Clock,
    Evidence,
    LogLine,
    LogSource,
    Note,
    Rank,
    RankActivity,
    Skipped,
    Span,
)
from forensics.model.stack import ExceptionChain, Frame, RaisedException, StackTrace
from forensics.model.verdict import (
    Alternative,
    CallPath,
    CallStep,
    Category,
    CausalRole,
    CollectiveVerdict,
    Confidence,
    Contradiction,
    Coverage,
    Failure,
    Finding,
    Fix,
    Gap,
    HardwareRow,
    Incident,
    OtherIncident,
    Owner,
    RankRow,
    SignatureRole,
    Status,
    Suspect,
    Verdict,
)

__all__ = [
    "Alternative", "CallPath", "CallStep", "Category", "CausalRole", "Clock", "Collective", "CollectiveVerdict",
    "Confidence", "Contradiction", "Coverage", "Event", "EventKind", "Evidence", "ExceptionChain", "Facts", "Failure",
    "FamilyUse", "Finding", "Fix", "Frame", "Gap", "Gpu", "HardwareFault", "HardwareRow", "Incident", "KernelFamily",
    "KernelName", "LogLine", "LogSource", "Note", "OtherIncident", "Owner", "ProcessExit", "RaisedException", "Rank",
    "RankActivity", "RankRow", "Setting", "SignatureRole", "Skipped", "SoftwareVersion", "Span", "StackTrace", "Status",
    "Suspect", "Verdict",
]
