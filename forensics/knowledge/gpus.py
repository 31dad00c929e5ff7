"""Which GPU a name means. In: a name as a person or a log writes it; out: `Gpu` records. Sample:

find_gpu("RTX PRO 6000") -> [Gpu(name="NVIDIA RTX PRO 6000 Blackwell", sm="sm_120", family="Blackwell", …)]
find_gpu("RTX 6000")     -> three of them: Turing, Ada and Blackwell cards share the name
find_gpu("9.0")          -> [Gpu(name=None, sm="sm_90", family="Hopper", …)]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from forensics.data import table
from forensics.ingest.pattern import Pattern
from forensics.knowledge.architectures import parse_target
from forensics.model import Gpu
from forensics.model.record import record

_SEPARATORS = Pattern(r"[\s_\-/(),]+")
_GLUED = Pattern(r"\b(rtx|gtx|pro|mi)(?=\d{4})", re.IGNORECASE)
_VENDOR_WORDS = frozenset(
    {"nvidia", "amd", "tesla", "geforce", "instinct", "radeon", "gpu", "graphics", "corporation", "quadro"}
)


@record
class Chip:
    """One compute capability or gfx target (signatures/facts/gpus.toml). smem_optin_bytes: shared memory a block may ask for."""

    sm: str
    family: str
    kind: str
    smem_optin_bytes: int | None = None
    features: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    arch_specific: tuple[str, ...] = ()
    family_specific: tuple[str, ...] = ()
    min_cuda: str | None = None
    last_cuda: str | None = None
    note: str = ""
    confidence: str = "source"

    @property
    def vendor(self) -> str:
        """ "amd" or "nvidia"."""
        return "amd" if self.sm.startswith("gfx") else "nvidia"

    @property
    def capability(self) -> str | None:
        """ "12.0" of sm_120; None for AMD."""
        number = self.sm.removeprefix("sm_")
        return f"{number[:-1]}.{number[-1]}" if number.isdigit() else None


@record
class Product:
    """A product of the table. bare: its short name is believed in running text without the vendor's."""

    name: str
    sm: str
    spellings: tuple[str, ...] = ()
    bare: bool = True


@cache
def _facts() -> dict[str, list[dict[str, Any]]]:
    return table("facts/gpus")


@cache
def chips() -> tuple[Chip, ...]:
    """Every chip of the table, NVIDIA by number, then AMD."""
    rows = []
    for row in _facts()["chip"]:
        lists: dict[str, Any] = {k: tuple(v) for k, v in row.items() if isinstance(v, list)}
        plain = {k: v for k, v in row.items() if not isinstance(v, list) and k != "class"}
        rows.append(Chip(kind=str(row["class"]), **plain, **lists))
    return tuple(rows)


@cache
def sms(vendor: str | None = None) -> tuple[str, ...]:
    """The SM names of the table ("sm_70" … "gfx1201"), of one vendor or of both."""
    return tuple(chip.sm for chip in chips() if vendor in (None, chip.vendor))


@cache
def chip(sm: str) -> Chip | None:
    """The chip of "sm_120", "sm_120a", "12.0" or "gfx942:sramecc+"; None where the table has none."""
    target = parse_target(sm)
    return next((c for c in chips() if target and c.sm == target.sm), None)


@cache
def products() -> tuple[Product, ...]:
    """Every product of the table."""
    return tuple(
        Product(
            str(row["name"]),
            str(row["sm"]),
            (str(row["name"]), *map(str, row.get("also", ()))),
            bool(row.get("bare", True)),
        )
        for row in _facts()["model"]
    )


def gpu_of(sm: str, name: str | None = None, *, source: str = "log") -> Gpu:
    """A `Gpu` of an SM name, filled from the chip table where the table has it."""
    target = parse_target(sm)
    known = chip(sm)
    return Gpu(
        name=name,
        sm=target.sm if target else sm,
        family=known.family if known else None,
        source=source,
        smem_optin_bytes=known.smem_optin_bytes if known else None,
    )


def _words(name: str) -> tuple[str, ...]:
    return tuple(w for w in _SEPARATORS.split(_GLUED.sub(r"\1 ", name).lower()) if w)


def _core(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that tell products apart."""
    return tuple(w for w in words if w not in _VENDOR_WORDS)


@cache
def _spellings() -> dict[tuple[str, ...], Product]:
    return {_words(spelling): product for product in products() for spelling in product.spellings}


def find_gpu(text: str) -> list[Gpu]:
    """All GPUs that a typed name can mean, one an SM; empty where it means none.

    text: a product name in any spelling, an SM ("sm_120", "12.0", "120"), a gfx target, or a family ("Hopper").
    A name that fits products of several SMs gives one `Gpu` each: the caller asks which.
    """
    words = _words(text)
    if not words or len(text) > 200:
        return []
    target = parse_target(text.strip())
    if target is not None and chip(text):
        return [gpu_of(text, source="flag")]
    if (
        len(words) > 1
        and (target := parse_target(words[-1]))
        and words[:-1] in {("compute", "capability"), ("cuda", "arch"), ("capability",)}
    ):
        return [gpu_of(words[-1], source="flag")]
    if exact := _spellings().get(words):
        return _one_an_sm([exact])
    family = text.strip().lower()
    if by_family := [c for c in chips() if c.family.lower().split(" (")[0] == family or c.kind == family]:
        return [gpu_of(c.sm, source="flag") for c in by_family]
    core = _core(words)
    if not core:
        return []
    return _one_an_sm(_containing(core) or _contained(core))


def _containing(core: tuple[str, ...]) -> list[Product]:
    """Products one of whose spellings has every word asked for."""
    return [product for words, product in _spellings().items() if set(core) <= set(words)]


def _contained(core: tuple[str, ...]) -> list[Product]:
    """The product whose whole spelling stands in what was typed ("H100 80GB HBM3 rev A"): the longest such spelling."""
    cores = {_core(words): product for words, product in reversed(_spellings().items()) if product.bare}
    for length in range(min(len(core), 8), 0, -1):
        for start in range(min(len(core), 16) - length + 1):
            if product := cores.get(core[start : start + length]):
                return [product]
    return []


def _one_an_sm(found: Iterable[Product]) -> list[Gpu]:
    first: dict[str, Product] = {}
    for product in found:
        first.setdefault(product.sm, product)
    return [gpu_of(sm, product.name, source="flag") for sm, product in first.items()]


def gpu_named(name: str) -> Gpu | None:
    """The one GPU that a device name printed by a driver means ("NVIDIA H100 80GB HBM3"), else None."""
    found = find_gpu(name)
    if len(found) != 1:
        return None
    if found[0].name is None:
        return found[0]
    return Gpu(name=name.strip(), sm=found[0].sm, family=found[0].family, smem_optin_bytes=found[0].smem_optin_bytes)
