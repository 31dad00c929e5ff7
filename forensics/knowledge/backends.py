"""Which kernels a backend's name leads to, and whether they run on a GPU. In: engine, setting, value; out: families and answers. Sample:

    backend_support("sglang", "moe_runner_backend", "flashinfer_trtllm_routed", "sm_120").answer -> "no"
    backends_on("sglang", "moe_runner_backend", "sm_120") -> ["flashinfer_cutlass", "flashinfer_mxfp4", "cutlass", "triton", …]

The rows are signatures/facts/backend_choices.toml, which the choice of fixes reads too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forensics.data import table
from forensics.knowledge.families import Support, family, supported
from forensics.model import KernelFamily
from forensics.model.record import record


@record
class Backend:
    """A row: one value of one engine's setting and the families behind it (none: library code that runs anywhere)."""

    engine: str
    setting: str
    value: str
    families: tuple[str, ...]
    note: str = ""


@cache
def backends() -> tuple[Backend, ...]:
    """All rows, in the table's order."""
    return tuple(
        Backend(row["engine"], row["setting"], row["value"], tuple(row["families"]), row.get("note", ""))
        for row in table("facts/backend_choices")["choice"]
    )


def _plain(name: str) -> str:
    return name.rsplit(".", 1)[-1].lower().replace("-", "_").replace(" ", "_")


def backend(engine: str | None, setting: str, value: str) -> Backend | None:
    """The row of a backend as any log writes it ("AttentionBackendEnum.TRITON_ATTN", "flashinfer-trtllm"). With `engine` None the
    first engine that has the name."""
    wanted = _plain(value)
    for row in backends():
        if row.setting == setting and engine in (None, row.engine) and wanted == _plain(row.value):
            return row
    return None


def families_for_backend(engine: str | None, setting: str, value: str) -> list[KernelFamily]:
    """Kernel families that a backend leads to; empty where it is not in the table."""
    row = backend(engine, setting, value)
    return [family(id) for id in row.families] if row else []


def backend_support(
    engine: str | None, setting: str, value: str, sm: str, versions: Mapping[str, str] | None = None
) -> Support:
    """Whether a backend runs on a GPU: yes where one of its families does, no where none can, else unknown."""
    row = backend(engine, setting, value)
    if row is None:
        return Support("unknown", f"nothing is known of {setting}={value}")
    if not row.families:
        return Support("yes", f"{row.value} is library code that runs on any GPU", confidence="inferred")
    answers = [supported(id, sm, versions) for id in row.families]
    for wanted in ("yes", "unknown"):
        found = next((a for a in answers if a.answer == wanted), None)
        if found:
            return Support(
                wanted, found.reason + (f" ({row.note})" if row.note else ""), found.source, found.confidence
            )
    first = answers[0]
    return Support("no", f"{row.value}: {first.reason}", first.source, first.confidence)


def backends_on(engine: str, setting: str, sm: str, versions: Mapping[str, str] | None = None) -> list[str]:
    """Values of a setting that run on a GPU, in the table's order."""
    rows = [row for row in backends() if row.engine == engine and row.setting == setting]
    return [row.value for row in rows if backend_support(engine, setting, row.value, sm, versions).answer == "yes"]
