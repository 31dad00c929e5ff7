"""Asks this machine which GPU it has. In: nothing; out: a `Gpu` or an error that says why not. Sample:

nvidia-smi prints "NVIDIA H100 80GB HBM3, 9.0" eight times -> Gpu("NVIDIA H100 80GB HBM3", "sm_90", count=8, source="local")
"""

from __future__ import annotations

import re

from forensics.errors import ForensicsError
from forensics.ingest.pattern import Pattern
from forensics.knowledge.gpus import gpu_named, gpu_of
from forensics.model import Gpu
from forensics.model.record import replace

_TIMEOUT_S = 20
_NVIDIA = ("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")
_AMD = ("rocminfo",)
_GFX = Pattern(r"Name:\s+(gfx[0-9a-f]{3,4})\s*$", re.MULTILINE)
_MARKETING = Pattern(r"Marketing Name:\s+(\S.*?)\s*$", re.MULTILINE)


def local_gpu() -> Gpu:
    """The first GPU of this machine, with how many alike there are. Raises ForensicsError where none is found."""
    if text := _output(_NVIDIA):
        return _nvidia(text)
    if (text := _output(_AMD)) and (found := _GFX.findall(text)):
        names = [name for name in _MARKETING.findall(text) if "Ryzen" not in name and "EPYC" not in name]
        return replace(gpu_of(found[0], names[-1] if names else None, source="local"), count=found.count(found[0]))
    raise ForensicsError(
        "no GPU found on this machine",
        why="neither nvidia-smi nor rocminfo names one",
        help='name the GPU instead: --gpu "RTX PRO 6000", --gpu sm_120',
    )


def _nvidia(text: str) -> Gpu:
    """The first line of nvidia-smi's answer. Drivers before 510 do not know compute_cap: then the name decides."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    name, _, capability = lines[0].rpartition(", ")
    if re.fullmatch(r"\d{1,2}\.\d", capability):
        found = gpu_of(capability, name, source="local")
    else:
        name = name or lines[0]
        found = replace(gpu_named(name) or Gpu(name), source="local")
    return replace(found, count=sum(line == lines[0] for line in lines))


def _output(command: tuple[str, ...]) -> str | None:
    """What a program prints; None where it is not there, fails or does not answer."""
    import subprocess

    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 and done.stdout.strip() else None
