"""The JSON report as types: one typed dict an object. In: nothing; out: types, `schema()`. Sample:

    schema()["properties"]["status"] -> {"enum": ["crashed", "degraded", "healthy", …]}

`null` means "not observed", an empty list "looked for, none there". Line numbers are 1-based and inclusive, times are seconds
since the epoch where the log gives a date and `null` otherwise, sizes are bytes. A key is never renamed or dropped without a
new number in `schema`; keys may be added.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from forensics.model.verdict import Category, CausalRole, Confidence, Owner, SignatureRole, Status

SCHEMA = "forensics-report/1"

FailureKind = Literal[
    "python", "native", "device_assert", "fatal_signal", "collective_timeout", "hardware", "oom_kill", "exit", "message"
]
Phase = Literal[
    "startup", "weight_load", "graph_capture", "warmup", "prefill", "decode", "train_step", "checkpoint", "shutdown"
]
Component = Literal["target_model", "draft_model", "tokenizer", "scheduler", "dataloader", "launcher"]


class Rank(TypedDict):
    """One process of the job: label as people call it, number the global rank, axes the parallel axes in lower case."""

    label: str
    number: int | None
    axes: dict[str, int]
    node: str | None
    pid: int | None


class Evidence(TypedDict):
    """A quotation from the input, and what a reader should see in it."""

    source: str
    first_line: int
    last_line: int
    quote: str
    shows: str


class Fix(TypedDict):
    """Something to set or do; command: the user's own launch command with the fix in it."""

    action: str
    component: str | None
    why: str
    confidence: Confidence
    source: str
    command: str | None


class Alternative(TypedDict):
    """What else it could be."""

    category: Category
    why: str
    confidence: Confidence


class Verdict(TypedDict):
    """The answer."""

    category: Category
    title: str
    explanation: str
    confidence: Confidence
    signature: str | None
    rank: Rank | None
    same_failure_ranks: list[Rank]
    culprit_note: str | None
    fixes: list[Fix]
    next_steps: list[str]
    must_not_prove: str | None
    settled_by: list[str]
    evidence: list[Evidence]
    alternatives: list[Alternative]


class Frame(TypedDict):
    """One call; frames stand outermost first. log_line: where it stands in the input."""

    file: str | None
    line: int | None
    function: str
    owner: Owner | None
    code: str | None
    module: str | None
    repeated: int
    log_line: int | None


class ChainLink(TypedDict):
    """One exception of a chain, innermost first."""

    type: str
    message: str
    link: Literal["cause", "context", "group"] | None
    frames: list[Frame]


class Kernel(TypedDict):
    """A decoded kernel name; sentence: the same in words."""

    name: str
    family: str | None
    op: str | None
    dtypes: dict[str, str]
    tile: list[int]
    archs: list[str]
    runs_on: list[str]
    sentence: str


class Primary(TypedDict):
    """The failure that started it. type, message: as raised last; root_*: the innermost cause."""

    kind: FailureKind
    type: str | None
    message: str
    root_type: str | None
    root_message: str
    chain: list[ChainLink]
    frames: list[Frame]
    kernel: Kernel | None
    rank: Rank | None
    time: float | None
    phase: Phase | None
    component: Component | None
    fingerprint: str
    evidence: list[Evidence]


class Failure(Primary):
    """A failure with its causal role; alike ones are folded."""

    role: CausalRole
    role_why: str
    count: int
    ranks: list[Rank]


class CallStep(TypedDict):
    """One step in human words; frame: index into primary.frames; gap_after: why what follows is not where it failed."""

    label: str
    owner: Owner
    frame: int | None
    gap_after: str | None


class Contradiction(TypedDict):
    """Asked for one thing, another ran."""

    setting: str
    requested: str
    observed: str
    explanation: str
    component: str | None
    confidence: Confidence
    evidence: list[Evidence]


class Suspect(TypedDict):
    """A rank that may be to blame for a hang."""

    rank: Rank
    why: str
    confidence: Confidence


class Desync(TypedDict):
    """What one rank was doing when the others waited."""

    rank: Rank
    op: str | None
    sequence: int | None
    numel_in: int | None
    numel_out: int | None


class Collective(TypedDict):
    """The collective a job hung in."""

    process_group: str | None
    op: str | None
    sequence: int | None
    numel_in: int | None
    numel_out: int | None
    dtype: str | None
    timeout_ms: int | None
    started_time: float | None
    waiting: list[Rank]
    missing: list[Rank]
    desync: list[Desync]
    suspects: list[Suspect]
    known_from: list[str]


class Hardware(TypedDict):
    """A hardware fault with what it means."""

    code: int | None
    kind: str
    name: str | None
    device: str | None
    rank: Rank | None
    meaning: str
    action: str
    evidence: list[Evidence]


class Engine(TypedDict):
    """The program that ran."""

    name: str | None
    version: str | None


class Device(TypedDict):
    """The GPUs. sm: sm_NN or gfxNNN; count: devices the job used; source: where this is known from."""

    name: str | None
    sm: str | None
    count: int | None
    source: Literal["log", "flag", "local", "inferred"] | None


class RankRow(TypedDict):
    """One rank's outcome; times and steps from marked regions and sampled windows."""

    label: str
    number: int | None
    node: str | None
    first_time: float | None
    last_time: float | None
    last_step: int | None
    outcome: str


class OtherIncident(TypedDict):
    """Another incident of the same input."""

    status: Status
    category: Category
    title: str
    rank: Rank | None
    time: float | None
    evidence: list[Evidence]


class Finding(TypedDict):
    """A signature or rule that matched."""

    id: str
    role: SignatureRole
    category: Category | None
    domain: str
    title: str
    explanation: str
    confidence: Confidence
    ranks: list[Rank]
    count: int
    evidence: list[Evidence]
    fixes: list[Fix]
    next_steps: list[str]
    references: list[str]
    captures: dict[str, str]


class Repro(TypedDict):
    """Whether the failure can be tried on its own, and why not."""

    recipe: str | None
    runnable: bool
    reason: str | None


class Source(TypedDict):
    """One input; bytes are counted after decompression."""

    name: str
    bytes: int
    lines: int
    encoding: str
    compression: str | None
    clock: str


class Skipped(TypedDict):
    """An input or a part that was not read."""

    name: str
    why: str
    bytes: int | None


class Note(TypedDict):
    """Something the analysis could not do or wants to say."""

    stage: str
    text: str
    source: str | None
    line: int | None


class Coverage(TypedDict):
    """What was read and what was not."""

    bytes: int
    lines: int
    claimed_lines: int
    sources: list[Source]
    skipped: list[Skipped]
    notes: list[Note]


class Report(TypedDict):
    """One report."""

    schema: Literal["forensics-report/1"]
    status: Status
    verdict: Verdict
    primary: Primary | None
    failures: list[Failure]
    call_path: list[CallStep]
    contradictions: list[Contradiction]
    collective: Collective | None
    hardware: list[Hardware]
    engine: Engine
    device: Device
    software: dict[str, str | None]
    config: dict[str, str | None]
    ranks: list[RankRow]
    world_size: int | None
    incidents: list[OtherIncident]
    findings: list[Finding]
    repro: Repro
    coverage: Coverage


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a report, generated from the types above by msgspec, which only this needs."""
    import msgspec

    found = msgspec.json.schema(Report)["$defs"]
    for name, part in found.items():
        if "properties" in part:  # msgspec sorts them by name; the contract's order reads better
            order = list(globals()[name].__annotations__)
            part["properties"] = {key: part["properties"][key] for key in order}
            part["required"] = order
    body = found.pop("Report")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        **body,
        "$defs": found,
    }
