"""What parsers find: events of one kind each. In: nothing; out: frozen records. Sample:

    [rank0]:[E1129 …] [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, …)
    -> Event(EventKind.COLLECTIVE_TIMEOUT, span, rank=Rank("rank 0", 0), fields={"collective": Collective(…)})
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from forensics.model.record import field, record
from forensics.model.source import Rank, Span
from forensics.model.stack import ExceptionChain, StackTrace


class EventKind(StrEnum):
    """One word a kind. `fields` per kind are documented where the parser stands."""

    PYTHON = "python"  # a traceback; chain is set
    NATIVE = "native"  # terminate called, c10::Error, TRT-LLM/ggml/glog/absl/LLVM/Rust… failure with its stack
    FATAL_SIGNAL = "fatal_signal"  # SIGSEGV, SIGABRT… by the process itself; type is the signal
    DEVICE_ASSERT = "device_assert"  # fields: assertion, file, line, kernel, blocks; folded, count
    DEVICE_ERROR = "device_error"  # a CUDA/HIP error printed without a traceback; type is the status name
    COLLECTIVE_TIMEOUT = "collective_timeout"  # fields: collective
    COLLECTIVE_STATE = "collective_state"  # desync reports, last enqueued/completed, flight recorder; fields: collective/…
    COMMUNICATION = "communication"  # NCCL WARN, gloo, store, UCX, NVSHMEM messages
    HARDWARE = "hardware"  # fields: fault (HardwareFault)
    OOM_KILL = "oom_kill"  # fields: victim_pid, victim_name, invoker, cgroup, rss_bytes
    PROCESS_EXIT = "process_exit"  # fields: exit (ProcessExit)
    LAUNCHER = "launcher"  # torchelastic summary, srun/slurmstepd, mpirun, ray, kubernetes; fields: as parsed
    MESSAGE = "message"  # an error line that is no traceback (level ERROR/FATAL/CRITICAL, "error: …")
    STACK = "stack"  # a stack without an error (py-spy, faulthandler dump, "Stack trace of the failed collective")
    LIFECYCLE = "lifecycle"  # fields: phase, state (begin|end), e.g. graph_capture begin; ready; shutdown; step
    WARNING = "warning"  # benign or advisory, kept because a rule wants it


@record
class Collective:
    """One collective operation. sequence: as the library counts; numel_*: elements; sizes as printed; timeout_ms, elapsed_ms."""

    op: str | None = None
    sequence: int | None = None
    process_group: str | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    dtype: str | None = None
    timeout_ms: int | None = None
    elapsed_ms: int | None = None
    last_enqueued: int | None = None
    last_started: int | None = None
    last_completed: int | None = None
    state: str | None = None


@record
class HardwareFault:
    """kind: xid, sxid, ecc, aer, nvswitch, mce, hsa, link; code: the number; device: PCI address as printed."""

    kind: str
    code: int | None = None
    device: str | None = None
    name: str | None = None
    message: str = ""
    subcode: str | None = None
    pid: int | None = None
    process: str | None = None
    node: str | None = None


@record
class ProcessExit:
    """code: as printed (-9, 137, 1); signal: "SIGKILL" where it follows; by: who reported it (torchelastic, slurm, ray, vllm…)."""

    code: int | None = None
    signal: str | None = None
    pid: int | None = None
    by: str | None = None


@record
class Event:
    """One thing that happened. type: exception type, signal, status name (report-contract, "type where nothing was raised");
    message: what it said, without the type; count: how many alike were folded into the first of them; last: the lines of the last of
    them, None where there is but one; time: of its first line."""

    kind: EventKind
    span: Span
    rank: Rank | None = None
    time: float | None = None
    type: str | None = None
    message: str = ""
    stacks: tuple[StackTrace, ...] = ()
    chain: ExceptionChain | None = None
    level: str | None = None
    count: int = 1
    parser: str = ""
    stream: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    last: Span | None = None
