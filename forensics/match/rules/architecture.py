"""The kernel or op that failed cannot run on this GPU. In: failing events, the GPU, kernel families; out: `Finding`s. Sample:

    "… Kernel: bmm_MxE4m3_MxE2m1MxE4m3_Fp32_…_sm100f" on sm_120
    -> Finding("rule.kernel-architecture", category=ARCH_MISMATCH, confidence=ESTABLISHED, captures={"kernel": "bmm_…", …})

Two proofs: the architectures in a kernel's name (none loads here), or an op whose list of GPUs is exact and leaves this one out.
Silent where the GPU is not known, where one of the proofs says that it runs, and where the error is of another kind (memory,
network, imports), whatever the stack leads through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from forensics.ingest.compiled import pattern_of
from forensics.knowledge import can_run, families_for_symbol, family, supported
from forensics.knowledge.families import symbols_in
from forensics.match.engine import Matcher
from forensics.match.quoting import evidence
from forensics.match.rules.fix_chooser import choose
from forensics.match.subject import Subject
from forensics.model.event import EventKind
from forensics.model.knowledge import KernelFamily, KernelName
from forensics.model.source import Evidence
from forensics.model.verdict import Category, Confidence, Finding, Fix, SignatureRole

ID = "rule.kernel-architecture"
_KINDS = (
    EventKind.PYTHON, EventKind.NATIVE, EventKind.DEVICE_ERROR, EventKind.FATAL_SIGNAL, EventKind.MESSAGE,
    EventKind.DEVICE_ASSERT,
)  # fmt: skip
#: errors that a wrong architecture does not cause
_OTHER_CAUSE = (
    r"out of memory|OutOfMemory|ImportError|ModuleNotFoundError|FileNotFoundError|PermissionError|KeyboardInterrupt|SystemExit"
    r"|ConnectionError|HTTPError|TimeoutError|DistBackendError|NCCL (?:error|WARN)|Broken pipe|No space left"
    r"|AttributeError|KeyError|EngineDeadError|See root cause above|ChildFailedError|CancelledError"
    r"|uncorrectable|GPU has fallen|device-side assert"
)
#: texts that speak of what a GPU can do, or are what is left of a kernel that could not load
_SPEAKS_OF_IT = (
    r"\bsm_?\d{2,3}|\bSM ?\d{1,3}|capabilit|architecture|[Nn]o kernel|kernel image|running GEMM|[Uu]nsupported|not supported"
    r"|does not support|illegal instruction|NO_BINARY|failed to load|CUDA_ERROR_INVALID_(?:IMAGE|SOURCE)|invalid device function"
)
#: the innermost frames say what was called; the outer ones lead through half the engine
INNER_FRAMES = 10


class _Proof(NamedTuple):
    """Why something cannot run here. name: of the kernel or op; reason: a sentence; wanted: what to quote; families: ids, for
    the fixes; runs_on: GPUs where it does."""

    name: str
    reason: str
    confidence: Confidence
    wanted: tuple[str, ...]
    families: tuple[str, ...] = ()
    kernel: KernelName | None = None
    runs_on: tuple[str, ...] = ()


def mismatches(matcher: Matcher) -> list[Finding]:
    """One finding for each kernel or op that failed and cannot run on the GPU of the log."""
    gpu = matcher.facts.gpu
    if gpu is None or gpu.sm is None:
        return []
    found: dict[str, tuple[_Proof, list[Subject]]] = {}
    for index in matcher.failing(_KINDS):
        subject = matcher.subjects.event_subject(index)
        if proof := _proof(matcher, subject, gpu.sm):
            found.setdefault(proof.name, (proof, []))[1].append(subject)
    return [_finding(matcher, proof, hits, gpu.sm) for proof, hits in found.values()]


def _proof(matcher: Matcher, subject: Subject, sm: str) -> _Proof | None:
    kernels = _kernels(subject.text)
    targeted = [kernel for kernel in kernels if kernel.archs]
    if targeted:
        # The kernel that failed is named: what its name says outranks everything the stack leads through.
        kernel = targeted[0]
        if any(can_run(target, sm) for target in kernel.archs):
            return None
        loads = ", ".join(kernel.runs_on) or ", ".join(kernel.archs)
        reason = f"its name ends in {'/'.join(kernel.archs)}, and such a binary loads on {loads} only, not on {sm}"
        families = tuple(row.id for row in families_for_symbol(kernel.name))
        return _Proof(kernel.name, reason, Confidence.ESTABLISHED, (kernel.name,), families, kernel, kernel.runs_on)
    if pattern_of(_OTHER_CAUSE).search(subject.text):
        return None
    return _family_proof(matcher, subject, sm)


def _family_proof(matcher: Matcher, subject: Subject, sm: str) -> _Proof | None:
    versions = {v.name: v.value for v in matcher.facts.versions}
    rows = list(_called(matcher, subject))
    answers = [(row, via, supported(row.id, sm, versions)) for row, via in rows]
    refused = [(row, via, answer) for row, via, answer in answers if answer.answer == "no"]
    # An op that does run here and was called further in makes the outer one's list irrelevant.
    if not refused or (answers and answers[0][2].answer == "yes"):
        return None
    row, via, answer = refused[0]
    speaks = bool(pattern_of(_SPEAKS_OF_IT).search(subject.text))
    sure = speaks and answer.confidence == "source"
    confidence = Confidence.ESTABLISHED if sure else Confidence.SUPPORTED if speaks else Confidence.HYPOTHESIS
    return _Proof(via, answer.reason, confidence, (via,), tuple(r.id for r, _, _ in refused), None, row.sms)


def _called(matcher: Matcher, subject: Subject) -> Iterable[tuple[KernelFamily, str]]:
    """Families named in the message, then in the innermost frames, innermost first; each with the word that named it."""
    seen: set[str] = set()
    texts = [subject.text[:4000]]
    for frame in reversed(subject.frames[-INNER_FRAMES:]):
        texts.append(f"{frame.function} {frame.code or ''} {frame.path.rpartition('/')[2]}"[:2000])
    for text in texts:
        for word, id in symbols_in(text):
            if id not in seen:
                seen.add(id)
                yield family(id), word


def _kernels(text: str) -> list[KernelName]:
    from forensics.knowledge import find_kernels

    return [kernel for kernel in find_kernels(text) if kernel.grammar is not None]


def _finding(matcher: Matcher, proof: _Proof, hits: Sequence[Subject], sm: str) -> Finding:
    facts = matcher.facts
    gpu = facts.gpu.name if facts.gpu and facts.gpu.name else sm
    what = proof.kernel.op if proof.kernel and proof.kernel.op else proof.name
    component = matcher.places.component(hits[0])
    quotes: list[Evidence] = [
        evidence(matcher.subjects, hit.span, proof.wanted, "the kernel or op that failed", hit.stream) for hit in hits[:4]
    ]
    if facts.gpu and facts.gpu.span:
        quotes.append(evidence(matcher.subjects, facts.gpu.span, (facts.gpu.name or sm,), f"the GPU is {sm}"))
    title = f"{_short(proof.name)} cannot run on {gpu}" + (f" ({sm})" if sm not in gpu else "")
    captures = {"sm": sm, "op": what, "runs_on": ", ".join(proof.runs_on)}
    if proof.kernel:
        captures["kernel"] = proof.kernel.name
    fixes: tuple[Fix, ...] = choose(proof.families, facts, component, proof.kernel)
    return Finding(
        id=ID,
        role=SignatureRole.ROOT,
        category=Category.ARCH_MISMATCH,
        title=title,
        explanation=_explain(proof, component),
        confidence=proof.confidence,
        evidence=tuple(quotes),
        domain="architecture",
        ranks=tuple({hit.rank.key: hit.rank for hit in hits if hit.rank}.values()),
        fixes=fixes,
        next_steps=("Find which setting or default chose this backend for the layer that failed, and choose one of those below.",),
        captures=captures,
        count=len(hits),
        specificity={Confidence.ESTABLISHED: 75, Confidence.SUPPORTED: 55}.get(proof.confidence, 25),
        spans=tuple(hit.span for hit in hits),
        events=tuple(hit.event for hit in hits if hit.event is not None),
    )


def _explain(proof: _Proof, component: str | None) -> str:
    where = f" in the {component.replace('_', ' ')}" if component else ""
    said = f"{proof.kernel.sentence} " if proof.kernel and proof.kernel.sentence else ""
    return f"{said}{_short(proof.name)} was called{where}: {proof.reason}."


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:44] + "…" + name[-12:]

