"""What the analysis concludes. In: nothing; out: frozen records; the JSON contract's words. Sample:

    Verdict(category=Category.ARCH_MISMATCH, title="trtllm-gen MoE kernel for sm_100 on an sm_120 GPU",
            confidence=Confidence.ESTABLISHED, rank=Rank("TP1", 1, (("tp", 1),)), …)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from forensics.model.event import Event
from forensics.model.knowledge import Facts, KernelName
from forensics.model.record import field, record
from forensics.model.source import Evidence, LogSource, Note, Rank, RankActivity, Skipped, Span
from forensics.model.stack import Frame, RaisedException


class Status(StrEnum):
    """How the job ended."""

    CRASHED = "crashed"
    HUNG = "hung"
    KILLED = "killed"
    DEGRADED = "degraded"
    HEALTHY = "healthy"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """established: the log proves it; supported: strong evidence, another reading possible; hypothesis; unknown."""

    ESTABLISHED = "established"
    SUPPORTED = "supported"
    HYPOTHESIS = "hypothesis"
    UNKNOWN = "unknown"


class CausalRole(StrEnum):
    """initiating: started it; same: the same failure by itself on another rank; cascade: a consequence; teardown: cleaning up."""

    INITIATING = "initiating"
    SAME = "same"
    CASCADE = "cascade"
    TEARDOWN = "teardown"
    UNKNOWN = "unknown"


class SignatureRole(StrEnum):
    """root: names a cause; cascade: a known consequence; confirmation: supports another; advice: worth saying, no failure."""

    ROOT = "root"
    CASCADE = "cascade"
    CONFIRMATION = "confirmation"
    ADVICE = "advice"


class Category(StrEnum):
    """The contract's categories, in its order."""

    ARCH_MISMATCH = "arch_mismatch"
    NO_KERNEL_IMAGE = "no_kernel_image"
    UNSUPPORTED_DTYPE_OR_QUANT = "unsupported_dtype_or_quant"
    ILLEGAL_MEMORY_ACCESS = "illegal_memory_access"
    DEVICE_ASSERT = "device_assert"
    OOM_GPU = "oom_gpu"
    OOM_HOST = "oom_host"
    NCCL = "nccl"
    HANG_OR_WATCHDOG = "hang_or_watchdog"
    JIT_COMPILE = "jit_compile"
    MISSING_LIBRARY = "missing_library"
    VERSION_MISMATCH = "version_mismatch"
    CONFIG_ERROR = "config_error"
    MODEL_LOAD = "model_load"
    GRAPH_CAPTURE = "graph_capture"
    SHAPE_OR_DTYPE_ASSERT = "shape_or_dtype_assert"
    DRIVER_OR_HARDWARE = "driver_or_hardware"
    SEGFAULT = "segfault"
    STORAGE = "storage"
    NUMERICS = "numerics"
    USER_CODE = "user_code"
    KILLED_EXTERNALLY = "killed_externally"
    NONE = "none"
    UNKNOWN = "unknown"


class Owner(StrEnum):
    """Whose code a frame is."""

    USER = "user"
    ENGINE = "engine"
    FRAMEWORK = "framework"
    KERNEL_LIBRARY = "kernel_library"
    RUNTIME = "runtime"
    DRIVER = "driver"


@record
class Fix:
    """action: what to set or do, as typed; component: target_model, draft_model or None; source: signature id or rule."""

    action: str
    why: str
    confidence: Confidence = Confidence.SUPPORTED
    component: str | None = None
    source: str = ""
    #: the user's own launch command with the fix in it, where the log shows the command
    command: str | None = None


@record
class Finding:
    """A signature or a derived rule that matched. domain: nccl, sglang…; captures: named groups; ranks: where it matched."""

    id: str
    role: SignatureRole
    category: Category | None
    title: str
    explanation: str
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    domain: str = ""
    ranks: tuple[Rank, ...] = ()
    fixes: tuple[Fix, ...] = ()
    next_steps: tuple[str, ...] = ()
    must_not_prove: str | None = None
    references: tuple[str, ...] = ()
    captures: Mapping[str, str] = field(default_factory=dict)
    count: int = 1
    #: among several root findings on one failure the higher wins (0 generic text, 50 usual, 100 proven by knowledge)
    specificity: int = 50
    #: every place it matched (evidence quotes only the first few), and the indices of the events among them
    spans: tuple[Span, ...] = ()
    events: tuple[int, ...] = ()
    #: of a signature that the user gave, not of a shipped one
    own: bool = False


@record
class Contradiction:
    """Asked for one thing, another ran. component: target_model, draft_model or None."""

    setting: str
    requested: str
    observed: str
    explanation: str
    evidence: tuple[Evidence, ...]
    component: str | None = None
    confidence: Confidence = Confidence.SUPPORTED


@record
class CallStep:
    """One step in human words. frame: index into the failure's frames (0-based), None for a step without a frame."""

    label: str
    owner: Owner
    frame: int | None = None


@record
class Gap:
    """Where what failed and where it surfaced are not the same place. after_step: 0-based index into the steps."""

    after_step: int
    why: str


@record
class CallPath:
    """steps outermost first, plumbing folded away."""

    steps: tuple[CallStep, ...] = ()
    gaps: tuple[Gap, ...] = ()


@record
class Failure:
    """A failure, alike ones folded (report-contract, "primary" and "failures")."""

    kind: str
    type: str | None
    message: str
    root_type: str | None
    root_message: str
    role: CausalRole
    fingerprint: str
    evidence: tuple[Evidence, ...]
    chain: tuple[RaisedException, ...] = ()
    frames: tuple[Frame, ...] = ()
    frame_owners: tuple[Owner, ...] = ()
    kernel: KernelName | None = None
    rank: Rank | None = None
    time: float | None = None
    phase: str | None = None
    component: str | None = None
    count: int = 1
    ranks: tuple[Rank, ...] = ()
    role_why: str = ""
    call_path: CallPath = CallPath()
    #: the events it was made of, for faces that show them in place
    events: tuple[Event, ...] = ()


@record
class Suspect:
    """A rank that may be to blame for a hang."""

    rank: Rank
    why: str
    confidence: Confidence


@record
class CollectiveVerdict:
    """The hang, collective by rank (report-contract, "collective"). desync rows: rank, op, sequence, numel_in, numel_out."""

    process_group: str | None = None
    op: str | None = None
    sequence: int | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    dtype: str | None = None
    timeout_ms: int | None = None
    started_time: float | None = None
    waiting: tuple[Rank, ...] = ()
    missing: tuple[Rank, ...] = ()
    desync: tuple[Mapping[str, Any], ...] = ()
    suspects: tuple[Suspect, ...] = ()
    known_from: tuple[str, ...] = ()


@record
class HardwareRow:
    """A hardware fault with what it means (report-contract, "hardware")."""

    kind: str
    code: int | None
    name: str | None
    device: str | None
    rank: Rank | None
    meaning: str
    action: str
    evidence: tuple[Evidence, ...]


@record
class Alternative:
    """What else it could be."""

    category: Category
    why: str
    confidence: Confidence = Confidence.HYPOTHESIS


@record
class Verdict:
    """The answer (report-contract, "verdict")."""

    category: Category
    title: str
    explanation: str
    confidence: Confidence
    signature: str | None = None
    rank: Rank | None = None
    same_failure_ranks: tuple[Rank, ...] = ()
    culprit_note: str | None = None
    fixes: tuple[Fix, ...] = ()
    next_steps: tuple[str, ...] = ()
    must_not_prove: str | None = None
    settled_by: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


@record
class RankRow:
    """One line of the ranks strip. outcome: a CausalRole word, "ok", "waiting", "missing", "silent", "unobserved" (the
    job failed, and nothing says what became of this rank)."""

    rank: Rank
    outcome: str
    activity: RankActivity | None = None


@record
class OtherIncident:
    """Another incident in the same input."""

    status: Status
    category: Category
    title: str
    rank: Rank | None
    time: float | None
    evidence: tuple[Evidence, ...]


@record
class Coverage:
    """What was read and what was not. claimed_lines: lines that some parser took."""

    bytes: int = 0
    lines: int = 0
    claimed_lines: int = 0
    sources: tuple[LogSource, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Note, ...] = ()


@record
class Incident:
    """Everything about one crash: what `analyze` returns and every face shows."""

    status: Status
    verdict: Verdict
    primary: Failure | None
    failures: tuple[Failure, ...]
    contradictions: tuple[Contradiction, ...]
    collective: CollectiveVerdict | None
    hardware: tuple[HardwareRow, ...]
    facts: Facts
    ranks: tuple[RankRow, ...]
    others: tuple[OtherIncident, ...]
    findings: tuple[Finding, ...]
    coverage: Coverage
    sources: tuple[LogSource, ...] = ()
