"""An incident of any number of ranks, made by hand: what a screen shows must not change when the analysis learns."""

from __future__ import annotations

from pathlib import Path

from forensics.model import (
    CallPath,
    CallStep,
    Category,
    CausalRole,
    Clock,
    Confidence,
    Coverage,
    Evidence,
    Facts,
    Failure,
    Finding,
    Fix,
    Frame,
    Gpu,
    Incident,
    LogSource,
    Owner,
    Rank,
    RankActivity,
    RankRow,
    Setting,
    SignatureRole,
    Span,
    Status,
    Verdict,
)

START = 1_795_983_062.0


def log_of(count: int, path: Path) -> None:
    """Rank 1 runs out of memory; the others lose their connection."""
    lines = [f"[2026-11-29 20:11:02 TP{rank}] init distributed ends. world_size={count}" for rank in range(count)]
    lines += ["[2026-11-29 20:12:02 TP1] torch.OutOfMemoryError: CUDA out of memory." if count > 1 else "torch.OutOfMemoryError"]
    lines += [f"[2026-11-29 20:12:03 TP{rank}] Connection closed by peer" for rank in range(count) if rank != 1]
    path.write_text("\n".join(lines) + "\n")


def incident_of(count: int, name: str) -> Incident:
    """The report of that log."""
    ranks = [Rank(f"TP{number}", number, (("tp", number),)) for number in range(count)]
    first = ranks[min(1, count - 1)]
    evidence = Evidence(Span(0, count + 1, count + 1), "torch.OutOfMemoryError: CUDA out of memory.", "the first failure")
    frames = (
        Frame("run_scheduler_process", "/srv/engine/scheduler.py", 281, "run()", log_line=count + 1),
        Frame("_call_impl", "/usr/lib/torch/nn/modules/module.py", 1790, "return forward_call(*args)", log_line=count + 1),
        Frame("mlp", "/srv/engine/deepseek_v4.py", 1546, "x = self.experts(x)", log_line=count + 1),
    )
    oom = Failure(
        kind="python",
        type="torch.OutOfMemoryError",
        message="CUDA out of memory.",
        root_type="torch.OutOfMemoryError",
        root_message="CUDA out of memory.",
        role=CausalRole.INITIATING,
        fingerprint="f1",
        evidence=(evidence,),
        frames=frames,
        frame_owners=(Owner.ENGINE, Owner.FRAMEWORK, Owner.ENGINE),
        rank=first,
        ranks=(first,),
        time=START + 60,
        role_why="nothing earlier explains it",
        call_path=CallPath((CallStep("scheduler", Owner.ENGINE, 0), CallStep("mlp", Owner.ENGINE, 2))),
    )
    others = tuple(rank for rank in ranks if rank != first)
    closed = Failure(
        kind="message",
        type=None,
        message="Connection closed by peer",
        root_type=None,
        root_message="Connection closed by peer",
        role=CausalRole.CASCADE,
        fingerprint="f2",
        evidence=(Evidence(Span(0, count + 2, count + 2), "Connection closed by peer"),),
        rank=others[0] if others else None,
        ranks=others,
        count=max(1, len(others)),
        time=START + 61,
        role_why="the peer was gone",
    )
    rows = tuple(
        RankRow(
            rank,
            "initiating" if rank == first else "cascade",
            RankActivity(rank, START, START + (60 if rank == first else 61), rank.number, count + 1),
        )
        for rank in ranks
    )
    finding = Finding(
        id="torch.cuda-out-of-memory",
        role=SignatureRole.ROOT,
        category=Category.OOM_GPU,
        title="The GPU's memory did not suffice",
        explanation="An allocation was refused.",
        confidence=Confidence.ESTABLISHED,
        evidence=(evidence,),
        ranks=(first,),
    )
    source = LogSource(name, 1000, 2 * count + 1, clock=Clock("wall", 1.0))
    return Incident(
        status=Status.CRASHED,
        verdict=Verdict(
            category=Category.OOM_GPU,
            title=f"{first.label} ran out of GPU memory",
            explanation="An allocation was refused; the other ranks lost their connection to it.",
            confidence=Confidence.ESTABLISHED,
            signature=finding.id,
            rank=first,
            fixes=(Fix("--mem-fraction-static 0.8", "leaves room for activations"),),
            evidence=(evidence,),
        ),
        primary=oom,
        failures=(oom, closed) if others else (oom,),
        contradictions=(),
        collective=None,
        hardware=(),
        facts=Facts(
            gpu=Gpu("NVIDIA H200", "sm_90", "Hopper", count),
            engine="sglang",
            settings=(Setting("mem_fraction_static", "0.95", "asked", Span(0, 1, 1)),),
            world_size=count,
        ),
        ranks=rows,
        others=(),
        findings=(finding,),
        coverage=Coverage(1000, 2 * count + 1, count, (source,)),
        sources=(source,),
    )
