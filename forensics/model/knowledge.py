"""What is known of GPUs, kernels, settings and versions. In: nothing; out: frozen records. Sample:

    bmm_MxE4m3_MxE2m1MxE4m3_…_sm100f ->
        KernelName(grammar="trtllm_gen_bmm", op="batched gemm", dtypes={"a": "mxfp4", …}, archs=("sm_100f",))
"""

from __future__ import annotations

from collections.abc import Mapping

from forensics.model.record import field, record
from forensics.model.source import Span


@record
class Gpu:
    """A GPU model. name: as printed or canonical; sm: "sm_120" or "gfx942", None where not known; family: "Blackwell";
    source: log, flag, local, inferred (report-contract, device.source)."""

    name: str | None = None
    sm: str | None = None
    family: str | None = None
    count: int | None = None
    source: str = "log"
    smem_optin_bytes: int | None = None
    span: Span | None = None


@record
class KernelName:
    """A decoded kernel name. grammar: which decoder, None where unknown; dtypes: keys a, b, out, acc, q, kv; tile: M, N, K;
    archs: targets its binary holds ("sm_100f"); runs_on: SMs of the GPU table that can load it; sentence: for people."""

    name: str
    grammar: str | None = None
    op: str | None = None
    dtypes: Mapping[str, str] = field(default_factory=dict)
    tile: tuple[int, ...] = ()
    archs: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()
    family: str | None = None
    sentence: str = ""
    span: Span | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@record
class KernelFamily:
    """A row of the op-support table. sms: "sm_100"…; exact: True where any other SM is refused or has no kernel."""

    id: str
    title: str
    library: str
    symbols: tuple[str, ...]
    backends: tuple[str, ...]
    sms: tuple[str, ...]
    exact: bool
    delivery: str = ""
    source: str = ""
    confidence: str = "source"
    notes: str = ""


@record
class FamilyUse:
    """An op-support row seen in use: via which word (symbol, kernel name, backend in a message) and where."""

    family: KernelFamily
    via: str
    span: Span


@record
class Setting:
    """One setting. name: canonical ("moe_runner_backend"); value: as text, "None" kept as None; component: target_model,
    draft_model or None; how: asked (flag, server_args, environment), resolved (engine says what it chose), observed (what ran)."""

    name: str
    value: str | None
    how: str
    span: Span
    component: str | None = None
    spelled: str = ""


@record
class SoftwareVersion:
    """name: torch, cuda, flashinfer, nccl, driver, sglang, vllm…; value: as printed; how: banner, path, fingerprint, flag."""

    name: str
    value: str
    span: Span
    how: str = "banner"


@record
class Facts:
    """All that the log says about the machine and the job. at_least: how many ranks it has, as far as their numbers tell; None where none
    is numbered above 0."""

    gpu: Gpu | None = None
    gpus: tuple[Gpu, ...] = ()
    engine: str | None = None
    settings: tuple[Setting, ...] = ()
    versions: tuple[SoftwareVersion, ...] = ()
    kernels: tuple[KernelName, ...] = ()
    families: tuple[FamilyUse, ...] = ()
    world_size: int | None = None
    model: str | None = None
    command: str | None = None
    command_span: Span | None = None
    at_least: int | None = None

    def version(self, name: str) -> str | None:
        """The first version seen of one package, or None."""
        return next((v.value for v in self.versions if v.name == name), None)

    def setting(self, name: str, component: str | None = None) -> Setting | None:
        """The first setting of that canonical name (and component, where given), or None."""
        return next(
            (s for s in self.settings if s.name == name and (component is None or s.component == component)), None
        )
