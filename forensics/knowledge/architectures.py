"""Which compiled code loads on which GPU. In: a target as compilers write it and a GPU; out: yes, no or not known. Sample:

    can_run("sm_100f", "sm_103") -> True        can_run("sm_100f", "sm_120") -> False      can_run("compute_80", "sm_120") -> True

The four rules are CUTLASS `Arch.can_run_binary_built_for` and NVIDIA's Blackwell compatibility guide: a plain cubin runs on its
own major version from its own minor on; an `a` cubin on that one chip; an `f` cubin on its family (same major, minor not
smaller); plain PTX on any equal or newer chip, PTX with a suffix only where its cubin would run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from forensics.errors import UsageError
from forensics.ingest.pattern import Pattern
from forensics.model.record import record

_TARGET = Pattern(r"(?:(sm|compute|lto)_?)?(\d{2,3})([af]?)(\+?ptx)?\Z", re.IGNORECASE)
_DOTTED = Pattern(r"(\d{1,2})\.(\d)([af]?)(\+ptx)?\Z", re.IGNORECASE)
_GFX = Pattern(r"gfx([0-9a-f]{3,4})(?:-generic)?((?::[a-z]+[+-])*)\Z", re.IGNORECASE)

#: Thor was sm_101 until CUDA 12.9 and is sm_110 since CUDA 13.0 (CuTe DSL enums alias the two)
_RENAMED = {101: 110}


@record
class Target:
    """What code was compiled for. number: 120 for sm_120, 0 for AMD; suffix: "", "a" or "f"; kind: cubin, ptx or gfx;
    gfx: "gfx942" for AMD."""

    number: int
    suffix: str = ""
    kind: str = "cubin"
    gfx: str | None = None

    @property
    def major(self) -> int:
        """12 of sm_120."""
        return self.number // 10

    @property
    def minor(self) -> int:
        """0 of sm_120."""
        return self.number % 10

    @property
    def sm(self) -> str:
        """The GPU's own name without a suffix: "sm_120", "gfx942"."""
        return self.gfx or f"sm_{self.number}"

    def __str__(self) -> str:
        if self.gfx:
            return self.gfx
        return f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.number}{self.suffix}"


def parse_target(text: str) -> Target | None:
    """Reads "sm_100f", "sm100f", "compute_90a", "12.0", "9.0a+PTX", "120", "gfx942:sramecc+"; None where it is none of these."""
    text = text.strip()
    if found := _GFX.match(text):
        return Target(0, kind="gfx", gfx="gfx" + found[1].lower())
    if found := _DOTTED.match(text):
        number, suffix, kind = int(found[1]) * 10 + int(found[2]), found[3], "ptx" if found[4] else "cubin"
    elif found := _TARGET.match(text):
        number, suffix = int(found[2]), found[3]
        kind = "ptx" if found[4] or (found[1] or "").lower() == "compute" else "cubin"
    else:
        return None
    if not 30 <= number < 200:
        return None
    return Target(_RENAMED.get(number, number), suffix.lower(), kind)


def can_run(arch_target: str, sm: str) -> bool:
    """True where code compiled for `arch_target` loads on the GPU `sm` ("sm_120", "12.0", "gfx942").

    Raises UsageError where one of the two is no architecture. AMD code objects run on their own gfx target only.
    """
    target, gpu = parse_target(arch_target), parse_target(sm)
    for given, parsed in ((arch_target, target), (sm, gpu)):
        if parsed is None:
            raise UsageError(
                f"no GPU architecture: {given!r}",
                why="it is neither an SM, a compute capability nor a gfx target",
                help="write sm_120, sm_100f, compute_90a, 12.0 or gfx942",
            )
    assert target is not None and gpu is not None
    if target.gfx or gpu.gfx:
        return target.gfx == gpu.gfx
    if target.suffix == "a":
        return target.number == gpu.number
    if target.suffix == "f" or target.kind == "cubin":
        return target.major == gpu.major and target.minor <= gpu.minor
    return target.number <= gpu.number


def runs_on(arch_targets: Iterable[str], sms: Iterable[str]) -> tuple[str, ...]:
    """Those of `sms` that can load code for at least one of the targets, in the order given."""
    targets = [t for t in arch_targets if parse_target(t)]
    return tuple(sm for sm in sms if any(can_run(target, sm) for target in targets))
