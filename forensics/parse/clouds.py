# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Machines that are taken back: spot and preemptible instances, pods that make room. In: an intake; out: LAUNCHER events. Samples:

    Spot instance interruption notice received: instance i-0abc will be terminated at 2026-05-03T10:02:00Z
    {"detail-type":"EC2 Spot Instance Interruption Warning", …}          AWS
    Instance was preempted.      The TPU node trainer-0 has been preempted          Google
    {"EventType": "Preempt", "NotBefore": …}          Azure's scheduled events
    Pod was terminated in response to imminent node shutdown.          the kubelet
    Preempted to accommodate a workload (UID: 12ab) due to …          Kueue (pkg/scheduler/preemption, 0.9)
    -> LAUNCHER type "SIGTERM", fields {"what": "cancelled", "reason": "preemption", "by": "cloud"}
    Normal  TaintManagerEviction  pod/w-3  Marking for deletion Pod ml/w-3     Kubernetes (pkg/controller/tainteviction, 1.31)
    kubelet[2201]: … "Eviction manager: must evict pod(s) to reclaim" resourceName="memory"     (pkg/kubelet/eviction, 1.31)
    -> LAUNCHER type "SIGTERM", fields {"what": "evicted", "by": "kubernetes"}
    Warning  DeadlineExceeded  job-controller  Job was active longer than specified deadline     (pkg/controller/job, 1.31)
    -> LAUNCHER type "SIGTERM", fields {"what": "cancelled", "reason": "time limit", "by": "kubernetes"}

A watcher that only tells that it looks out for such a notice, and an engine that preempts a request, are none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.model.event import EventKind
from forensics.parse.rows import Row, Table

if TYPE_CHECKING:
    from forensics.ingest.anchors import Anchor
    from forensics.ingest.intake import Intake
    from forensics.model.event import Event

#: what stands before the words of a notice where nobody has got one: who looks out for it, what would be, and an engine's own preemption
_LOOKS_OUT = (
    r"\b(?:[Nn]o|[Nn]ot|[Nn]ever|[Cc]heck(?:s|ing)?|[Ww]atch(?:es|ing)|[Ll]isten(?:s|ing)?|[Pp]oll(?:s|ing)|[Mm]onitor(?:s|ing)|[Ww]ait(?:s|ing)? for|[Rr]egister\w{0,3}"
    r"|[Ii]f|[Ww]hen(?:ever)?|[Ii]n case|may|might|can|could|would|[Uu]ntil|PreemptionMode|[Ss]equence group|[Rr]equest)\b"
)
_FIELDS = {"what": "cancelled", "reason": "preemption", "by": "cloud"}


def _taken(literal: str, pattern: str) -> Row:
    return Row(literal, EventKind.LAUNCHER, rf"^(?:(?!{_LOOKS_OUT}).){{0,300}}?(?P<message>{pattern}.{{0,300}})$", type="SIGTERM", fields=_FIELDS)


def _kept(literal: str, pattern: str, **fields: str) -> Row:
    return Row(literal, EventKind.LAUNCHER, rf"(?P<message>{pattern}.{{0,300}})$", type="SIGTERM", fields={**fields, "by": "kubernetes"})


_SPOT = r"\b[Ss]pot (?:[Ii]nstance |VM )?[Ii]nterruption (?:[Nn]otice|[Ww]arning|[Ss]ignal|[Ee]vent)"

_TABLE = Table(
    "clouds",
    (
        _taken("EC2 Spot Instance Interruption Warning", r"EC2 Spot Instance Interruption Warning"),
        _taken("nterruption ", rf"{_SPOT} (?:was )?(?:received|detected|issued|arrived)\b"),
        _taken("nterruption ", rf"{_SPOT}[:,]? .{{0,60}}\b(?:will be|terminat\w{{2,4}}|stopp\w{{2,4}}|hibernat\w{{2,4}}|at \d)"),
        _taken("nterruption ", rf"\b(?:[Rr]eceived|[Dd]etected|[Gg]ot) (?:an? |the )?(?:EC2 |AWS )?{_SPOT}"),
        _taken("Spot ITN received", r"Spot ITN received"),
        _taken(" preempted", r"\b(?:[Ii]nstance|VM|TPU(?: VM| node)?|[Nn]ode|[Mm]achine|[Cc]luster)\b(?: [\w./:'\"-]{1,80})? (?:was|has been|is being|is) preempted\b"),
        _taken("reemption ", r"\b(?:[Rr]eceived|[Dd]etected|[Gg]ot) (?:an? |the )?(?:GCE |GCP |VM |spot |Spot )?[Pp]reemption (?:notice|signal|warning|event)\b"),
        _taken('"EventType', r'"EventType" ?: ?"Preempt"'),
        _taken("cheduled event: Preempt", r"\b[Ss]cheduled event: Preempt\b"),
        _taken("imminent node shutdown", r"Pod was terminated in response to imminent node shutdown"),
        _taken("Preempted to accommodate a workload", r"Preempted to accommodate a workload"),
        _kept("TaintManagerEviction", r"TaintManagerEviction\b.{0,200}?\bMarking for deletion", what="evicted"),
        _kept("Eviction manager: ", r"Eviction manager: (?:must evict pod\(s\) to reclaim|pod is evicted successfully)", what="evicted"),
        _kept("Job was active longer than specified deadline", r"Job was active longer than specified deadline", what="cancelled", reason="time limit"),
        _taken("to admit critical pod", r"Preempted in order to admit critical pod"),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """That the machine or the pod was taken away for another one's sake."""
    return _TABLE.read(intake)
