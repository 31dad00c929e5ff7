"""Which GPU the job ran on, from the log. In: retained lines; out: the device and all devices named. Sample:

    NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
    -> Gpu(name="NVIDIA GeForce RTX 5090", sm="sm_120", family="Blackwell", source="log", …)

Each sighting has a weight (signatures/facts/device_lines.toml): what a program states of its device beats a configuration file's
name, which beats a name in passing. Lists of what a build supports, and the suffix of a kernel, are no sightings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from forensics.knowledge.gpus import chip, find_gpu, gpu_named, gpu_of
from forensics.knowledge.linerules import LineMatch, LineRule, Sightings, rules
from forensics.model import Gpu
from forensics.model.record import record, replace

#: sightings below this weight name the device by a class or a request only
_INFERRED_BELOW = 30


@record
class Sighting:
    """A mention. weight: how much it says of the job's device; index: which device, 0-based; count: how many, where said."""

    gpu: Gpu
    weight: int
    index: int | None
    count: int | None


def device_rules() -> tuple[LineRule, ...]:
    """All rows that this module reads."""
    return (*rules("device_lines"), *rules("device_lines", "limit"), *rules("device_lines", "count"))


def devices(seen: Sightings) -> tuple[Gpu | None, tuple[Gpu, ...]]:
    """The job's device (None where nothing names one) and every device named, strongest first, one a name and SM."""
    found = sorted(_sightings(seen), key=lambda s: (-s.weight, s.gpu.span.first_line if s.gpu.span else 0))
    every: dict[tuple[str | None, str | None], Gpu] = {}
    for sighting in found:
        every.setdefault((sighting.gpu.name, sighting.gpu.sm), sighting.gpu)
    named = {gpu.sm for gpu in every.values() if gpu.name}
    every = {key: gpu for key, gpu in every.items() if gpu.name or gpu.sm not in named}
    best = _strongest(found)
    if best is None:
        return _by_limit(seen), tuple(every.values())
    counted = _count(found, best, seen)
    return replace(best, count=counted), tuple(every.values())


def _sightings(seen: Sightings) -> Iterable[Sighting]:
    for match in seen.matches(rules("device_lines")):
        if sighting := _read(match):
            yield sighting


def _read(match: LineMatch) -> Sighting | None:
    """The device of one matching line; None where the words name no device."""
    groups = {key: value for key, value in match.found.groupdict().items() if value}
    weight = int(match.rule.fields["weight"])
    sm = _sm(groups)
    if sm and chip(sm) is None:
        return None
    name = groups.get("name", "").strip(" _*'\"").removesuffix(" GPU") or None
    known = _of_name(name) if name else None
    if known is None and (sm is None or (name and weight < 60)):
        return None
    gpu = gpu_of(sm, name) if sm else known
    assert gpu is not None
    if known and name and weight <= 50:  # typed by a person: the product's own name reads better
        gpu = replace(gpu, name=find_gpu(known.name or name)[0].name)
    source = "log" if weight >= _INFERRED_BELOW else "inferred"
    index, count = groups.get("index"), groups.get("count")
    if "others" in groups:  # "GPU 0,1,2,3: …"
        count = str(groups["others"].count(",") + 1)
    return Sighting(
        replace(gpu, source=source, span=match.span),
        weight,
        int(index) if index else None,
        int(count) if count else None,
    )


def _sm(groups: dict[str, str]) -> str | None:
    if "gfx" in groups:
        return groups["gfx"].lower()
    if "cc" in groups:
        return "sm_" + groups["cc"].replace(".", "")
    if "major" in groups:
        return f"sm_{groups['major']}{groups['minor']}"
    if "sm" in groups:
        return "sm_" + groups["sm"].rstrip("af")
    return None


def _of_name(name: str) -> Gpu | None:
    """The GPU of a printed name; trailing words of the sentence are left off until it is one."""
    words = name.replace("_", " ").split()
    for end in range(min(len(words), 9), 0, -1):
        head = " ".join(words[:end]).rstrip(".,;:")
        if gpu := gpu_named(head):
            return gpu
    return None


def _strongest(found: Sequence[Sighting]) -> Gpu | None:
    """The device: SM from the heaviest sightings that have one (the most frequent among them), name from the heaviest that
    agrees with it."""
    with_sm = [s for s in found if s.gpu.sm]
    if not with_sm:
        return found[0].gpu if found else None
    top = [s for s in with_sm if s.weight >= with_sm[0].weight - 5]
    most = Counter(s.gpu.sm for s in top).most_common()
    sm = next(s.gpu.sm for s in top if s.gpu.sm in {m for m, n in most if n == most[0][1]})
    first = next(s for s in top if s.gpu.sm == sm)
    if first.gpu.name is None:
        named = next((s.gpu.name for s in found if s.gpu.name and s.gpu.sm == sm), None)
        return replace(first.gpu, name=named)
    return first.gpu


def _count(found: Sequence[Sighting], best: Gpu, seen: Sightings) -> int | None:
    """How many devices the log lists or says there are."""
    listed = {s.index for s in found if s.index is not None and s.gpu.sm == best.sm}
    if len(listed) > 1:
        return max(listed) + 1
    said = [s.count for s in found if s.count and s.gpu.sm == best.sm]
    said += [int(m.found["count"]) for m in seen.matches(rules("device_lines", "count"))]
    return said[0] if said else None


def _by_limit(seen: Sightings) -> Gpu | None:
    """A GPU known by its shared memory only: no name, no SM."""
    for match in seen.matches(rules("device_lines", "limit")):
        return Gpu(source="inferred", smem_optin_bytes=int(match.found["bytes"]), span=match.span)
    return None
