"""Incidents made by hand, so that a face can be tested without a log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forensics.model import (
    Alternative,
    CallPath,
    CallStep,
    Category,
    CausalRole,
    Clock,
    CollectiveVerdict,
    Confidence,
    Contradiction,
    Coverage,
    Evidence,
    Facts,
    Failure,
    Fix,
    Frame,
    Gap,
    Gpu,
    HardwareRow,
    Incident,
    KernelName,
    LogSource,
    Note,
    OtherIncident,
    Owner,
    RaisedException,
    Rank,
    RankActivity,
    RankRow,
    Setting,
    Skipped,
    SoftwareVersion,
    Span,
    Status,
    Suspect,
    Verdict,
)

#: everything that could hurt a terminal, a page or an issue
HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07 \x1b[2J [bold red]markup[/] [link=file:///etc/passwd]x[/link] <script>alert(1)</script> "
    "\u202egnp.exe\u200b @maintainer #1 javascript:alert(1) ``` ~~~ | a | & \" ' ]]> --> \udc80 \x00 \x9b31m"
)

SOURCE = LogSource("run/server.log", 44_953, 558, clock=Clock("wall", 1.0))
RANKS = tuple(Rank(f"TP{number}", number, (("tp", number),)) for number in range(4))
START = 1_795_983_062.0
MESSAGE = "Error occurred when running GEMM! (numBatches: 256, Kernel: bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x8x256_sm100f)"


def quoted(first: int, last: int, text: str, shows: str = "") -> Evidence:
    return Evidence(Span(0, first, last), text, shows)


def crash() -> Incident:
    """Four ranks alike; every field of the records is used."""
    frames = (
        Frame("run_scheduler_process", "/opt/engine/scheduler.py", 3184, "scheduler = Scheduler(", log_line=90),
        Frame("forward", "/opt/engine/deepseek_v4_nextn.py", 127, "hidden = self.decoder(", log_line=92),
        Frame("mlp", "/opt/engine/deepseek_v4.py", 1546, "hidden = self.experts(hidden)", log_line=94),
        Frame("trtllm_fp4_block_scale_routed_moe", "/opt/flashinfer/core.py", 2902, "return op(", log_line=96),
    )
    owners = (Owner.ENGINE, Owner.ENGINE, Owner.ENGINE, Owner.KERNEL_LIBRARY)
    kernel = KernelName(
        "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x8x256_sm100f",
        "trtllm_gen_bmm",
        "batched gemm",
        {"a": "mxfp4", "b": "mxfp8", "out": "mxfp8", "acc": "fp32"},
        (128, 8, 256),
        ("sm_100f",),
        ("sm_100", "sm_103"),
        "flashinfer.trtllm_moe",
        "batched GEMM, MXFP8 × MXFP4, for the sm_100 family",
        Span(0, 97, 97),
    )
    path = CallPath(
        (
            CallStep("nextn", Owner.ENGINE, 1),
            CallStep("mlp", Owner.ENGINE, 2),
            CallStep("routed MoE", Owner.KERNEL_LIBRARY, 3),
        ),
        (Gap(1, "launches are asynchronous"),),
    )
    chain = (
        RaisedException("RuntimeError", MESSAGE, frames),
        RaisedException("Exception", f"Capture cuda graph failed: {MESSAGE}", frames[:1], "context"),
    )
    quote = quoted(
        88, 100, "Traceback (most recent call last):\n" + "\n".join(f"  line {n}" for n in range(12)), "the traceback"
    )
    initiating = Failure(
        kind="python",
        type="Exception",
        message=f"Capture cuda graph failed: {MESSAGE}",
        root_type="RuntimeError",
        root_message=MESSAGE,
        role=CausalRole.INITIATING,
        fingerprint="a1b2",
        evidence=(quote,),
        chain=chain,
        frames=frames,
        frame_owners=owners,
        kernel=kernel,
        rank=RANKS[1],
        time=START + 60,
        phase="graph_capture",
        component="draft_model",
        count=4,
        ranks=RANKS,
        role_why="printed first",
        call_path=path,
    )
    sigquit = Failure(
        kind="message",
        type=None,
        message="Received sigquit from a child process.",
        root_type=None,
        root_message="Received sigquit from a child process.",
        role=CausalRole.CASCADE,
        fingerprint="c3d4",
        evidence=(quoted(558, 558, "Received sigquit from a child process."),),
        time=START + 61,
        role_why="the parent reacts to its children",
    )
    verdict = Verdict(
        Category.ARCH_MISMATCH,
        "A trtllm-gen MoE kernel for 10.x GPUs was chosen on a 12.x GPU",
        "The draft's MoE ran kernels that exist for the sm_100 family only.\n\nThe GPU is sm_120.",
        Confidence.ESTABLISHED,
        "flashinfer.trtllm-moe-cubin-on-sm12x",
        RANKS[1],
        (RANKS[0], RANKS[2], RANKS[3]),
        None,
        (
            Fix(
                "drop --speculative-algorithm",
                "only the draft reaches these kernels",
                component="draft_model",
                command="run --tp 4",
            ),
            Fix("use another checkpoint", "", Confidence.HYPOTHESIS),
        ),
        ("report it to the engine",),
        "that the flag is ignored everywhere",
        ("pip show sglang",),
        (quoted(2, 2, "server_args=ServerArgs(moe_runner_backend='triton')", "Triton was asked for"),),
        (Alternative(Category.CONFIG_ERROR, "an override is skipped"),),
    )
    gpu = Gpu("NVIDIA RTX PRO 6000 Blackwell", "sm_120", "Blackwell", 4)
    facts = Facts(
        gpu,
        (gpu,),
        "sglang",
        (
            Setting("moe_runner_backend", "triton", "asked", Span(0, 2, 2)),
            Setting("quantization", None, "asked", Span(0, 2, 2)),
        ),
        (SoftwareVersion("sglang", "0.5.16", Span(0, 1, 1)), SoftwareVersion("torch", "2.11.0+cu130", Span(0, 1, 1))),
        (kernel,),
        (),
        4,
        "DeepSeek-V4-Flash-NVFP4",
        "python -m sglang.launch_server --tp 4",
        Span(0, 1, 1),
    )
    activity = RankActivity(RANKS[0], START, START + 60, 1, 558, 12)
    rows = tuple(
        RankRow(rank, "initiating" if rank.number == 1 else "same", replace(activity, rank=rank)) for rank in RANKS
    )
    against = Contradiction(
        "moe_runner_backend",
        "triton",
        "flashinfer_trtllm_routed",
        "not honoured",
        (quoted(2, 2, "server_args"),),
        "draft_model",
    )
    other = OtherIncident(
        Status.DEGRADED, Category.OOM_GPU, "an earlier retry", RANKS[2], START, (quoted(5, 5, "retrying"),)
    )
    return Incident(
        Status.CRASHED,
        verdict,
        initiating,
        (initiating, sigquit),
        (against,),
        None,
        (),
        facts,
        rows,
        (other,),
        (),
        Coverage(
            44_953,
            558,
            300,
            (SOURCE,),
            (Skipped("core.123", "a core dump is no log", 12),),
            (Note("parse", "a torn line", Span(0, 7, 7)),),
        ),
        (SOURCE,),
    )


def hang() -> Incident:
    """One rank missing from a collective, another with an Xid."""
    it = crash()
    collective = CollectiveVerdict(
        "default_pg",
        "ALLREDUCE",
        6,
        4_194_304,
        4_194_304,
        "float32",
        15_000,
        START,
        (RANKS[0], RANKS[2]),
        (RANKS[1],),
        ({"rank": RANKS[3], "op": "ALLGATHER", "sequence": 6, "numel_in": 1, "numel_out": 4},),
        (Suspect(RANKS[1], "never entered number 6", Confidence.ESTABLISHED),),
        ("text", "flight_recorder"),
    )
    fault = HardwareRow(
        "xid",
        79,
        "GPU has fallen off the bus",
        "0000:3b:00.0",
        RANKS[1],
        "the GPU is gone",
        "reseat it",
        (quoted(9, 9, "NVRM: Xid"),),
    )
    verdict = replace(
        it.verdict, category=Category.HANG_OR_WATCHDOG, title="TP1 did not enter all-reduce 6", same_failure_ranks=()
    )
    return replace(it, status=Status.HUNG, verdict=verdict, collective=collective, hardware=(fault,), contradictions=())


def healthy() -> Incident:
    """Nothing failed."""
    it = crash()
    verdict = Verdict(Category.NONE, "Nothing failed in this log", "", Confidence.SUPPORTED)
    rows = tuple(replace(row, outcome="ok") for row in it.ranks)
    return replace(
        it, status=Status.HEALTHY, verdict=verdict, primary=None, failures=(), contradictions=(), ranks=rows, others=()
    )


def unknown() -> Incident:
    """Not a single thing is known."""
    verdict = Verdict(Category.UNKNOWN, "Something may have failed", "", Confidence.UNKNOWN)
    return Incident(Status.UNKNOWN, verdict, None, (), (), None, (), Facts(), (), (), (), Coverage())


def many(ranks: int) -> Incident:
    """One rank failed first, every seventh was fine, the others fell with it."""
    it = crash()
    rows = tuple(
        RankRow(
            Rank(f"rank {n}", n),
            "initiating" if n == 17 else "ok" if n % 7 == 0 else "cascade",
            RankActivity(Rank(f"rank {n}", n), START, START + n),
        )
        for n in range(ranks)
    )
    return replace(it, ranks=rows)


def hostile() -> Incident:
    """Every text that comes from a log is an attack."""
    it = crash()
    assert it.primary is not None
    frame = Frame(HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE)
    rank = Rank(HOSTILE, 0, node=HOSTILE)
    quote = quoted(1, 1, HOSTILE, HOSTILE)
    failure = replace(
        it.primary,
        type=HOSTILE,
        message=HOSTILE,
        root_type=HOSTILE,
        root_message=HOSTILE,
        evidence=(quote,),
        frames=(frame,),
        chain=(RaisedException(HOSTILE, HOSTILE, (frame,)),),
        rank=rank,
        ranks=(rank,),
        role_why=HOSTILE,
        call_path=CallPath((CallStep(HOSTILE, Owner.USER, 0),), (Gap(0, HOSTILE),)),
        kernel=KernelName(HOSTILE, sentence=HOSTILE),
    )
    verdict = replace(
        it.verdict,
        title=HOSTILE,
        explanation=HOSTILE,
        rank=rank,
        same_failure_ranks=(rank,),
        culprit_note=HOSTILE,
        fixes=(Fix(HOSTILE, HOSTILE, command=HOSTILE),),
        next_steps=(HOSTILE,),
        must_not_prove=HOSTILE,
        settled_by=(HOSTILE,),
        evidence=(quote,),
        alternatives=(Alternative(Category.NCCL, HOSTILE),),
    )
    source = LogSource(HOSTILE, 1, 1)
    against = Contradiction(HOSTILE, HOSTILE, HOSTILE, HOSTILE, (quote,))
    gpu = Gpu(HOSTILE, "sm_120")
    span = Span(0, 1, 1)
    facts = Facts(
        gpu,
        (gpu,),
        "sglang",
        (Setting(HOSTILE, HOSTILE, "asked", span),),
        (SoftwareVersion(HOSTILE, HOSTILE, span),),
        (KernelName(HOSTILE, sentence=HOSTILE),),
        model=HOSTILE,
        command=HOSTILE,
        command_span=span,
    )
    row = RankRow(rank, "initiating", RankActivity(rank, START, START + 9))
    other = OtherIncident(Status.CRASHED, Category.NCCL, HOSTILE, rank, START, (quote,))
    return replace(
        it,
        verdict=verdict,
        primary=failure,
        failures=(failure,),
        contradictions=(against,),
        facts=facts,
        ranks=(row, row),
        others=(other,),
        coverage=Coverage(1, 1, 1, (source,), (Skipped(HOSTILE, HOSTILE),), (Note("parse", HOSTILE),)),
        sources=(source,),
    )


MADE = {
    "crash": crash,
    "hang": hang,
    "healthy": healthy,
    "unknown": unknown,
    "hostile": hostile,
    "256 ranks": lambda: many(256),
}


@pytest.fixture(params=sorted(MADE))
def incident(request: pytest.FixtureRequest) -> Incident:
    """Each of the incidents made by hand."""
    return MADE[request.param]()


@pytest.fixture
def made() -> dict[str, Incident]:
    """All of them by name."""
    return {name: make() for name, make in MADE.items()}


@pytest.fixture
def hostile_text() -> str:
    """The attack that the hostile incident is made of."""
    return HOSTILE
