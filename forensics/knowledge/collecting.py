"""Everything the log says about machine and job, in one record. In: intake and events; out: `Facts`. Sample:

    collect(intake, events) -> Facts(gpu=Gpu("NVIDIA H100 80GB HBM3", "sm_90", …), engine="sglang", world_size=8, settings=(…), …)

world_size: what the log states, else ranks times nodes from the launch (tensor x pipeline x data parallel, processes x nodes), else
as many as were seen, where none is missing below the highest. at_least: one more than the highest rank seen. The device's count is the
world size where no listing says more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from forensics.errors import UsageError
from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.knowledge.devices import device_rules, devices
from forensics.knowledge.engines import engine
from forensics.knowledge.families import family, symbols_in
from forensics.knowledge.gpus import find_gpu, gpu_of
from forensics.knowledge.kernels import KERNEL_ANCHORS, find_kernels
from forensics.knowledge.linerules import LineRule, Sightings, rule_anchors
from forensics.knowledge.settings import Command, commands, setting_rules, settings
from forensics.knowledge.versions import version_rules, versions
from forensics.model import Event, Facts, FamilyUse, Gpu, KernelName, Setting, SoftwareVersion, Span
from forensics.model.record import replace

OWNER = "knowledge"
_MAX_KERNELS = 200
_MAX_FAMILIES = 200
_MAX_TEXTS = 4_000
#: engines that serve: their world is tensor x pipeline x data parallel
_SERVING = ("sglang", "vllm", "tensorrt-llm", "tgi", None)


@cache
def _rules() -> tuple[LineRule, ...]:
    return (*device_rules(), *version_rules(), *setting_rules())


def anchors() -> list[Anchor]:
    """Literals that make a line worth keeping for this floor."""
    return list(_anchors())


@cache
def _anchors() -> tuple[Anchor, ...]:
    return (*rule_anchors(OWNER, _rules()), *(Anchor(text.encode(), 0, 0, OWNER) for text in KERNEL_ANCHORS))


def collect(intake: Intake, events: Sequence[Event], *, gpu: Gpu | str | None = None) -> Facts:
    """The facts of a log. gpu: what the user says the job ran on (a `Gpu`, a name, an SM, "local"); used where the log is silent.

    Raises UsageError where `gpu` is a name of no or of several GPUs, ForensicsError where "local" finds none.
    """
    seen = Sightings(intake, _rules())
    launched = commands(seen)
    found = settings(seen, launched)
    of_log, all_gpus = devices(seen)
    chosen = _chosen(of_log, _given(gpu))
    name = engine(intake, events)
    world = world_size(found, intake, events, name)
    if chosen is not None and chosen.count is None and world is not None:
        chosen = replace(chosen, count=world)
    model = next((s for s in found if s.name == "model" and s.component != "draft_model" and s.value), None)
    command = launched[0] if launched else None
    return Facts(
        gpu=chosen,
        gpus=all_gpus,
        engine=name,
        settings=found,
        versions=versions(seen),
        kernels=tuple(_kernels(intake, events)),
        families=tuple(_families(events)),
        world_size=world,
        at_least=world or (highest + 1 if (highest := max(_rank_numbers(intake, events), default=0)) else None),
        model=model.value if model else None,
        command=command.text if command else None,
        command_span=command.span if command else None,
    )


def versions_from(intake: Intake) -> tuple[SoftwareVersion, ...]:
    """Versions of an intake by itself."""
    return versions(Sightings(intake, version_rules()))


def commands_from(intake: Intake) -> list[Command]:
    """Launch commands of an intake by itself."""
    return commands(Sightings(intake, setting_rules()))


def _given(gpu: Gpu | str | None) -> Gpu | None:
    """The user's word for a GPU as one record; "local" asks this machine."""
    if gpu is None or isinstance(gpu, Gpu):
        return gpu
    if gpu.strip().lower() == "local":
        from forensics.knowledge.local import local_gpu

        return local_gpu()
    found = find_gpu(gpu)
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"no GPU called {gpu!r}",
            why="the tables have no such product, SM or gfx target",
            help="write a product name (H100), an SM (sm_120, 12.0) or a gfx target",
        )
    choices = ", ".join(f"{g.name or g.family} ({g.sm})" for g in found)
    raise UsageError(f"{gpu!r} can be several GPUs", why=choices, help="write the full name or the SM")


def _chosen(of_log: Gpu | None, given: Gpu | None) -> Gpu | None:
    """The log's own word first, where it states the device; then the user's; then what the log lets one infer."""
    if of_log is not None and of_log.sm and of_log.source == "log":
        return of_log
    if given is None:
        return of_log
    if given.sm and not given.family:
        given = replace(gpu_of(given.sm, given.name), source=given.source)
    return replace(given, count=given.count or (of_log.count if of_log else None))


def world_size(
    found: Iterable[Setting], intake: Intake, events: Sequence[Event], engine_name: str | None = None
) -> int | None:
    """How many processes the job has, None where nothing says."""
    first: dict[str, str] = {}
    for setting in found:
        if setting.value is not None and setting.component != "draft_model":
            first.setdefault(setting.name, setting.value)
    if stated := _number(first.get("world_size") or first.get("WORLD_SIZE")):
        return max(stated, max(_rank_numbers(intake, events), default=-1) + 1)
    tensor, pipeline = _number(first.get("tensor_parallel_size")), _number(first.get("pipeline_parallel_size"))
    data = _number(first.get("data_parallel_size"))
    if engine_name in _SERVING and (tensor or pipeline or data):
        attention_dp = first.get("enable_dp_attention") == "True"  # a grouping of the tensor-parallel ranks
        return (tensor or 1) * (pipeline or 1) * (1 if attention_dp else data or 1)
    per_node = _number(first.get("nproc_per_node"))
    nodes = _number((first.get("nnodes") or "1").split(":")[-1])
    if per_node and nodes:
        return per_node * nodes
    if total := _number(first.get("num_processes")):
        return total
    seen = _rank_numbers(intake, events)
    # of ranks of which some are missing the highest that was seen need not be the last
    return len(seen) if len(seen) > 1 and max(seen) == len(seen) - 1 else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and 0 < int(text[:6]) < 100_000 else None


def _rank_numbers(intake: Intake, events: Sequence[Event]) -> set[int]:
    """Numbers of all ranks that wrote or are spoken of."""
    numbers = {a.rank.number for a in intake.activity if a.rank.number is not None}
    return numbers | {e.rank.number for e in events if e.rank is not None and e.rank.number is not None}


def _texts(events: Sequence[Event]) -> Iterator[tuple[str, Span]]:
    """Messages and frames of the events with their spans, each text once."""
    once: set[str] = set()
    for event in events:
        spans = [(event.message, event.span)]
        for raised in event.chain.exceptions if event.chain else ():
            spans.append((raised.message, raised.span or event.span))
            spans += [
                (f"{f.path} {f.function} {f.code or ''}", _line(event.span, f.log_line))
                for f in raised.frames[:120]
            ]
        for stack in event.stacks:
            spans += [(f"{f.function} {f.code or ''}", _line(stack.span, f.log_line)) for f in stack.frames[:120]]
        for text, span in spans:
            if text and text not in once:
                once.add(text)
                yield text[:8_000], span
        if len(once) > _MAX_TEXTS:
            return


def _line(span: Span, number: int | None) -> Span:
    return Span(span.source, number, number) if number else span


def _kernels(intake: Intake, events: Sequence[Event]) -> Iterator[KernelName]:
    """Kernel names of the events and of lines with a kernel's literal, decoded, each name once."""
    once: set[str] = set()
    for text, span in [*_texts(events), *_kernel_lines(intake)]:
        for name in find_kernels(text):
            if name.name not in once and len(once) < _MAX_KERNELS:
                once.add(name.name)
                yield replace(name, span=span)


def _kernel_lines(intake: Intake) -> Iterator[tuple[str, Span]]:
    indices: set[int] = set()
    for literal in KERNEL_ANCHORS:
        indices.update(intake.marks.get(literal.encode(), ())[:_MAX_KERNELS])
    if not intake.scanned:
        indices.update(
            i for i, line in enumerate(intake.lines[:20_000]) if any(text in line.raw for text in KERNEL_ANCHORS)
        )
    for index in sorted(indices)[:_MAX_TEXTS]:
        line = intake.lines[index]
        yield line.text[:8_000], Span(line.source, line.number, line.number)


def _families(events: Sequence[Event]) -> Iterator[FamilyUse]:
    """Families in use: by symbols and kernel names in messages and frames."""
    once: set[tuple[str, int, int]] = set()
    for text, span in _texts(events):
        for symbol, id in symbols_in(text):
            key = (id, span.source, span.first_line)
            if key not in once and len(once) < _MAX_FAMILIES:
                once.add(key)
                yield FamilyUse(family(id), symbol, span)
        for name in find_kernels(text):
            if name.family and (name.family, span.source, span.first_line) not in once:
                once.add((name.family, span.source, span.first_line))
                yield FamilyUse(family(name.family), name.name, span)
