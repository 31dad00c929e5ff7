"""`forensics gpu`, `support`, `kernel`, `binary`: what is known, without a log. In: names and paths; out: text or JSON. Samples:

forensics gpu "RTX PRO 6000"                    what it is, and which kernel families run on it
forensics support trtllm_fp4_block_scale_moe --gpu sm_120
forensics kernel bmm_MxE4m3_MxE2m1MxE4m3_…_sm100f --format json
nm -D lib.so | awk '{print $3}' | forensics kernel -
forensics binary site-packages/sgl_kernel --gpu sm_121
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from forensics.cli.output import emit_text
from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.knowledge.binaries import BinaryCode
    from forensics.model import Gpu, KernelFamily, KernelName

_FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
_MAX_NAMES = 200_000
#: files that could not be read and are named
_MOST_DAMAGED = 20
#: the keys that a kernel's types always have, in the report's order
_TYPES = ("a", "b", "out", "acc", "q", "kv")


def _print_json(value: object) -> None:
    emit_text(json.dumps(value, indent=2))


def _gpus(name: str) -> list[Gpu]:
    from forensics.knowledge.gpus import find_gpu
    from forensics.knowledge.local import local_gpu

    found = [local_gpu()] if name == "local" else find_gpu(name)
    if not found:
        raise UsageError(
            f"no GPU called {name!r}",
            why="the tables have no such product, SM or gfx target",
            help="write a product name (H100, RTX PRO 6000), sm_120, 12.0 or gfx942",
        )
    return found


def _one_gpu(name: str) -> Gpu:
    found = _gpus(name)
    if len(found) > 1:
        raise UsageError(
            f"{name!r} can be several GPUs",
            why=", ".join(f"{g.name or g.family} ({g.sm})" for g in found),
            help="write the full name or the SM",
        )
    return found[0]


@click.command(epilog='Example:  forensics gpu "RTX PRO 6000"')
@click.argument("name", nargs=-1, required=True)
@_FORMAT
def gpu(name: tuple[str, ...], form: str) -> int:
    """What a GPU is and which kernel families run on it. NAME: as people write it, sm_120, 12.0, gfx942, or local."""
    found = [_gpu_facts(one) for one in _gpus(" ".join(name))]
    if form == "json":
        _print_json(found)
    else:
        emit_text("\n\n".join("\n".join(_gpu_lines(one)) for one in found))
    return 0


def _gpu_facts(one: Gpu) -> dict[str, Any]:
    from forensics.knowledge.families import families, supported
    from forensics.knowledge.gpus import chip, products

    assert one.sm is not None
    row = chip(one.sm)
    answers: dict[str, list[dict[str, str]]] = {"yes": [], "no": [], "unknown": []}
    for family in families():
        answer = supported(family.id, one.sm)
        answers[answer.answer].append({"id": family.id, "title": family.title, "reason": answer.reason})
    return {
        "name": one.name,
        "sm": one.sm,
        "capability": row.capability if row else None,
        "family": one.family,
        "class": row.kind if row else None,
        "products": [p.name for p in products() if p.sm == one.sm],
        "shared_memory_a_block": one.smem_optin_bytes,
        "features": list(row.features) if row else [],
        "lacks": list(row.lacks) if row else [],
        "loads": list(_loads(one.sm)),
        "min_cuda": row.min_cuda if row else None,
        "last_cuda": row.last_cuda if row else None,
        "note": row.note if row else "",
        "confidence": row.confidence if row else "inferred",
        "families": answers,
    }


def _loads(sm: str) -> Iterator[str]:
    """Binary targets that load on the GPU."""
    from forensics.knowledge.architectures import can_run
    from forensics.knowledge.gpus import chips

    for row in chips():
        for target in (row.sm, *row.arch_specific, *row.family_specific):
            if row.vendor == ("amd" if sm.startswith("gfx") else "nvidia") and can_run(target, sm):
                yield target


def _gpu_lines(facts: dict[str, Any]) -> Iterator[str]:
    title = facts["name"] or f"{facts['family']} {facts['sm']}"
    yield f"{title}  {facts['sm']}" + (f"  compute capability {facts['capability']}" if facts["capability"] else "")
    yield f"  {facts['family']}, {facts['class']}" + (
        f", needs CUDA {facts['min_cuda']} or newer" if facts["min_cuda"] else ""
    )
    if facts["shared_memory_a_block"]:
        yield f"  shared memory a block may ask for: {facts['shared_memory_a_block']:,} bytes"
    for key, words in (("features", "has"), ("lacks", "lacks"), ("loads", "loads code for"), ("products", "sold as")):
        if facts[key]:
            yield f"  {words}: {', '.join(dict.fromkeys(facts[key]))}"
    if facts["note"]:
        yield f"  note: {facts['note']}"
    for answer, heading in (
        ("yes", "kernel families that run on it"),
        ("no", "kernel families that do not"),
        ("unknown", "not known for this GPU"),
    ):
        rows = facts["families"][answer]
        if rows:
            yield f"\n  {heading} ({len(rows)})"
            yield from (f"    {row['id']:<40} {row['title']}" for row in rows)


@click.command(epilog="Example:  forensics support trtllm_fp4_block_scale_moe --gpu sm_120")
@click.argument("op", nargs=-1, required=True)
@click.option("--gpu", "on", help="Only whether it runs on this GPU, and why.")
@_FORMAT
def support(op: tuple[str, ...], on: str | None, form: str) -> int:
    """Which GPUs an op, kernel or backend runs on. OP: a family's id, a function or kernel name, a backend, or words."""
    found = _families_of(" ".join(op))
    device = _one_gpu(on) if on else None
    rows = [_family_facts(row, device) for row in found]
    if form == "json":
        _print_json(rows)
    else:
        emit_text("\n\n".join("\n".join(_family_lines(row)) for row in rows))
    return 0


def _families_of(text: str) -> list[KernelFamily]:
    """By id, symbol or kernel name, backend, then by words of id and title."""
    from forensics.knowledge.backends import backends, families_for_backend
    from forensics.knowledge.families import families, families_for_symbol, family
    from forensics.knowledge.kernels import decode_kernel

    by_id = [row for row in families() if row.id == text]
    found = by_id or families_for_symbol(text)
    if not found and (decoded := decode_kernel(text).family):
        found = [family(decoded)]
    if not found:
        for setting in dict.fromkeys(row.setting for row in backends()):
            found += [row for row in families_for_backend(None, setting, text) if row not in found]
    if not found:
        words = text.lower().replace("_", " ").split()
        found = [
            r for r in families() if all(w in f"{r.id} {r.title} {r.library}".lower().replace("_", " ") for w in words)
        ]
    if not found:
        raise UsageError(
            f"nothing is known of {text!r}",
            why="no family of operations has such a name",
            help="try a function name as in a traceback, a kernel name, or a word such as moe",
        )
    return found


def _family_facts(row: KernelFamily, device: Gpu | None) -> dict[str, Any]:
    from forensics.knowledge.backends import backends
    from forensics.knowledge.families import family_facts, supported
    from forensics.knowledge.gates import gates
    from forensics.knowledge.notes import notes_about

    more = family_facts(row.id)
    answer = supported(row.id, device.sm) if device and device.sm else None
    chosen = [f"{b.engine} {b.setting}={b.value}" for b in backends() if row.id in b.families]
    return {
        "id": row.id,
        "title": row.title,
        "library": row.library,
        "gpu": device.sm if device else None,
        "supported": answer.answer if answer else None,
        "reason": answer.reason if answer else None,
        "sms": list(row.sms),
        "exact": row.exact,
        "condition": more.sms_note,
        "symbols": list(row.symbols),
        "backends": chosen or list(row.backends),
        "gates": [
            {"op": g.op, "backend": g.backend or None, "since": g.since, "sms": list(g.sms)}
            for symbol in row.symbols
            for g in gates(symbol)
        ],
        "versions": [
            {"package": n.package, "versions": n.have, "text": n.text, "fixed_in": n.fixed_in}
            for n in (notes_about([row.id], device.sm) if device and device.sm else ())
        ],
        "errors": list(more.errors),
        "delivery": row.delivery,
        "since": more.since,
        "dtypes": more.dtypes,
        "source": row.source,
        "confidence": row.confidence,
        "notes": row.notes,
    }


def _family_lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['id']}  {facts['title']}"
    if facts["supported"]:
        yield f"  on {facts['gpu']}: {facts['supported']} ({facts['reason']})"
    only = " and no others" if facts["exact"] else " (others not excluded)"
    yield f"  runs on: {', '.join(facts['sms'])}{only}"
    for key, words in (
        ("condition", "conditions"),
        ("dtypes", "types"),
        ("delivery", "delivered as"),
        ("since", "since"),
        ("notes", "note"),
    ):
        if facts[key]:
            yield f"  {words}: {facts[key]}"
    if facts["backends"]:
        yield f"  chosen by: {'; '.join(facts['backends'])}"
    for gate in facts["gates"]:
        by = f" with backend {gate['backend']}" if gate["backend"] else ""
        yield f"  FlashInfer {gate['since']} lets {gate['op']}{by} through on: {', '.join(gate['sms'])}"
    for note in facts["versions"]:
        yield f"  {note['package']} {note['versions']}: {note['text']}"
    for text in facts["errors"]:
        yield f"  says where it does not fit: {text}"
    yield f"  source: {facts['source']} ({facts['confidence']})"


@click.command(epilog="Example:  forensics kernel nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT")
@click.argument("name", nargs=-1)
@_FORMAT
def kernel(name: tuple[str, ...], form: str) -> int:
    """A kernel's name in words, and the GPUs that can run it. NAME: as printed; none or - reads names from standard input."""
    from forensics.knowledge.kernels import decode_kernel

    found = [decode_kernel(one) for one in _names(name)]
    if form == "json":
        _print_json([_kernel_facts(one) for one in found])
    else:
        emit_text("\n".join(line for one in found for line in _kernel_lines(one)))
    return 0


def _names(given: Sequence[str]) -> Iterator[str]:
    """The arguments; one name a line of standard input where there are none or one is "-"."""
    if not given and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(
            "no kernel name given",
            why="neither as an argument nor on standard input",
            help="forensics kernel NAME, or names on standard input",
        )
    for one in given or ("-",):
        if one != "-":
            yield one
            continue
        for number, line in enumerate(sys.stdin or ()):
            if number >= _MAX_NAMES:
                return
            if line.strip():
                yield line.strip()


def _kernel_facts(one: KernelName) -> dict[str, Any]:
    return {
        "name": one.name,
        "grammar": one.grammar,
        "op": one.op,
        "dtypes": {key: one.dtypes[key] for key in _TYPES if key in one.dtypes},
        "tile": list(one.tile),
        "archs": list(one.archs),
        "runs_on": list(one.runs_on),
        "family": one.family,
        "sentence": one.sentence or None,
    }


def _kernel_lines(one: KernelName) -> Iterator[str]:
    yield one.name
    if one.grammar is None:
        yield "  not a name that is known here"
        return
    yield f"  {one.sentence}"
    yield f"  op: {one.op}" + (f"   tile: {' x '.join(map(str, one.tile))}" if one.tile else "")
    if one.dtypes:
        yield "  types: " + ", ".join(f"{key} {one.dtypes[key]}" for key in _TYPES if key in one.dtypes)
    if one.runs_on:
        yield f"  runs on: {', '.join(one.runs_on)}"
    if one.family:
        yield f"  family: {one.family} (forensics support {one.family})"


@click.command(epilog="Example:  forensics binary site-packages/sgl_kernel --gpu sm_121")
@click.argument("path", nargs=-1, required=True)
@click.option("--gpu", "on", help="Also say whether it runs on this GPU.")
@_FORMAT
def binary(path: tuple[str, ...], on: str | None, form: str) -> int:
    """The GPU architectures inside a library, cubin, fatbin, wheel or site-packages folder."""
    from forensics.knowledge.binaries import scan

    device = _one_gpu(on) if on else None
    damaged: list[str] = []
    found = scan(path, damaged)
    if damaged:
        from forensics.visible import visible

        for name in damaged[:_MOST_DAMAGED]:
            click.echo(visible(f"not read: {name} is cut off or damaged"), err=True)
    if form == "json":
        _print_json([_binary_facts(one, device) for one in found])
    elif not found:
        emit_text("no GPU code found in what could be read" if damaged else "no GPU code found")
    else:
        emit_text("\n".join(line for one in found for line in _binary_lines(one, device)))
    return 1 if damaged else 0


def _binary_facts(one: BinaryCode, device: Gpu | None) -> dict[str, Any]:
    sm = device.sm if device else None
    return {
        "path": one.path,
        "code": [{"target": c.target, "kind": c.kind, "count": c.count} for c in one.code],
        "gpu": sm,
        "runs": one.can_run(sm) if sm else None,
    }


def _binary_lines(one: BinaryCode, device: Gpu | None) -> Iterable[str]:
    yield one.path
    yield "  " + ", ".join(f"{c.target}{' (PTX)' if c.kind == 'ptx' else ''} x{c.count}" for c in one.code)
    if device and device.sm:
        fits = one.partly(device.sm)
        yield f"  on {device.sm}: " + (
            f"yes, the code for {', '.join(fits)}" if fits else "no, none of this code loads there"
        )


COMMANDS: dict[str, click.Command] = {"gpu": gpu, "support": support, "kernel": kernel, "binary": binary}
