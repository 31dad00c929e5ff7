"""`forensics signatures …`: what the database knows, and the tools to add to it. In: ids, paths, lines; out: text. Sample:

forensics signatures list --category arch_mismatch
forensics signatures check my-signatures/
forensics signatures explain-line nccl.peer-gone "ncclRemoteError: …" --gpu sm_90
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from forensics.cli.output import emit, emit_text
from forensics.errors import ExitCode, ForensicsError, UsageError

if TYPE_CHECKING:
    from forensics.match import Signature

#: what a command group offers the front door
COMMANDS = ("signatures",)

_DIRS = click.option(
    "--signatures",
    "dirs",
    multiple=True,
    type=click.Path(file_okay=False),
    help="A folder with your own signatures too.",
)

_NEW = """\
id = "{id}"
title = "TODO: one line, what happened"
role = "root"
category = "unknown"
confidence = "supported"
specificity = 50
why = \"\"\"
TODO: what is true, why it fails, which choice led there.
\"\"\"
next_steps = ["TODO: what to look at or to run next."]
references = ["TODO: project, file, version that prints this"]

[match]
literals = ["{literal}"]

[[examples]]
text = '''
{example}
'''

[[counterexamples]]
text = '''
TODO: a line that is close and must not match
'''
because = "TODO"
"""


@click.group()
def signatures() -> None:
    """List, show, check and write the known failures (see docs/add-a-signature.md)."""


@signatures.command("list")
@_DIRS
@click.option("--role", help="Only this role: root, cascade, confirmation, advice.")
@click.option("--category", help="Only this category.")
@click.option("--domain", help="Only this domain (flashinfer, nccl, …).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_command(dirs: Sequence[str], role: str | None, category: str | None, domain: str | None, form: str) -> int:
    """Every signature, one a line."""
    wanted = {"role": role, "category": category, "domain": domain}
    found = [one for one in _load(dirs) if all(getattr(one, k) == v for k, v in wanted.items() if v)]
    if form == "json":
        keys = ("id", "role", "category", "domain", "confidence", "specificity", "title")
        emit_text(json.dumps([{key: getattr(one, key) for key in keys} for one in found], indent=2))
        return ExitCode.HEALTHY
    width = max((len(one.id) for one in found), default=0)
    for one in found:
        emit_text(f"{one.id:{width}}  {one.role:12}  {one.category or '':26}  {one.title}")
    return ExitCode.HEALTHY


@signatures.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@_DIRS
def show_command(ids: Sequence[str], dirs: Sequence[str]) -> int:
    """Everything about a signature: what it means, what to do, how it is recognised, its examples."""
    from forensics.match.page import page

    for id in ids:
        entry, path = _entry(id, dirs)
        emit_text(page(entry, path))
    return ExitCode.HEALTHY


@signatures.command("check")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH…]")
@click.option("--strict/--lenient", default=None, help="As for shipped signatures (the default for those).")
def check_command(paths: Sequence[str], strict: bool | None) -> int:
    """Say everything that is wrong with signature files, all at once; without PATH, with the shipped ones."""
    from forensics import data
    from forensics.match.linting import lint

    shipped = os.path.join(data.base(), "rules")
    chosen = list(paths) or [shipped]
    inside = all(os.path.abspath(path).startswith(os.path.abspath(shipped)) for path in chosen)
    problems = lint(chosen, strict=inside if strict is None else strict)
    for problem in problems:
        emit_text(str(problem))
    if problems:
        raise ForensicsError(
            f"{len(problems)} problem(s)",
            why="they stand above",
            where=", ".join(chosen),
            help="see docs/add-a-signature.md",
            code=ExitCode.USAGE,
        )
    emit_text(f"{sum(len(data.toml_files(path)) for path in chosen)} file(s), nothing wrong")
    return ExitCode.HEALTHY


@signatures.command("new")
@click.argument("id")
@click.option("--example", default="TODO: the line as the program prints it", help="A line that it shall match.")
@click.option("--output", "-o", help="Write it there instead of printing it.")
def new_command(id: str, example: str, output: str | None) -> int:
    """Print a signature to start from."""
    from forensics.match.schema import ID

    if not ID.match(id):
        raise UsageError(
            f"{id!r} cannot be an id",
            why="an id is family.short-name",
            where="ID",
            help="family.what-it-is, in lower case: nccl.peer-gone",
        )
    literal = example.replace("\\", "\\\\").replace('"', '\\"')
    emit(_NEW.format(id=id, literal=literal, example=example).encode(), output)
    return ExitCode.HEALTHY


@signatures.command("explain-line")
@click.argument("id")
@click.argument("line")
@_DIRS
@click.option("--gpu", help="Assume this GPU.")
@click.option("--engine", help="Assume this engine.")
@click.option("--set", "versions", multiple=True, metavar="NAME=VERSION", help="Assume this version of a package.")
def explain_command(
    id: str, line: str, dirs: Sequence[str], gpu: str | None, engine: str | None, versions: Sequence[str]
) -> int:
    """Say, test by test, why a line does or does not match a signature."""
    from forensics.match import explain_line

    given: dict[str, Any] = {"versions": dict(pair.split("=", 1) for pair in versions if "=" in pair)}
    given |= {key: value for key, value in (("gpu", gpu), ("engine", engine)) if value}
    steps = explain_line(_signature(id, dirs), line, given)
    for step in steps:
        mark = {True: "yes", False: "NO ", None: "?  "}[step.ok]
        emit_text(f"{mark}  {step.what:14} {step.detail.lstrip()}")
    emit_text("matches" if all(step.ok for step in steps) else "does not match")
    return ExitCode.HEALTHY


@signatures.command("docs")
@click.option("--output", "-o", required=True, type=click.Path(file_okay=False), help="The folder for the pages.")
@_DIRS
def docs_command(output: str, dirs: Sequence[str]) -> int:
    """Write a Markdown page a signature, and an index."""
    from forensics.match.page import index, page

    os.makedirs(output, exist_ok=True)
    entries = []
    for one in _load(dirs):
        entry, path = _entry(one.id, dirs)
        entries.append(entry)
        emit(page(entry, path).encode(), os.path.join(output, f"{one.id}.md"))
    emit(index(entries).encode(), os.path.join(output, "index.md"))
    emit_text(f"{len(entries)} pages in {output}")
    return ExitCode.HEALTHY


def _load(dirs: Sequence[str]) -> tuple[Signature, ...]:
    from forensics.match import load_signatures

    return load_signatures(dirs, status=("stable", "draft", "retired"))


def _signature(id: str, dirs: Sequence[str]) -> Signature:
    import difflib

    known = {one.id: one for one in _load(dirs)}
    if id not in known:
        near = difflib.get_close_matches(id, known, 3) or [other for other in known if id in other][:3]
        raise UsageError(
            f"no signature {id!r}",
            why="none of those that are loaded has this id",
            help="did you mean " + ", ".join(near) if near else "forensics signatures list",
        )
    return known[id]


def _entry(id: str, dirs: Sequence[str]) -> tuple[dict[str, Any], str]:
    """A signature's TOML as written, and where that is."""
    from forensics import data
    from forensics.match.load import read_entries

    source = _signature(id, dirs).source
    entry = next(entry for entry in read_entries(source) if entry.get("id") == id)
    shown = os.path.relpath(source, data.base()) if source.startswith(data.base()) else source
    return entry, shown
