"""Signatures from TOML files, compiled once. In: the shipped `signatures/rules/` and the user's folders; out: `Signatures`. Sample:

    load_signatures() -> (Signature(id="cutlass.arch-conditional-mma", …), …)

An index holds what matching needs (literals, patterns, conditions); titles, explanations and fixes lie in one file a family and
are read only when a signature of that family matched. `compile_all` writes both into the wheel.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from operator import is_
from typing import Any

from forensics import data
from forensics.errors import UsageError
from forensics.ingest.anchors import Anchor
from forensics.match.signature import Signature, anchors_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forensics.match.schema import Problem

Signatures = tuple[Signature, ...]

#: keys of [match] that stand in columns of their own
_COLUMNS = ("literals", "any_literals")
#: top-level keys that are only for people or tests
_NOT_DETAILS = ("match", "examples", "counterexamples")


def load_signatures(
    extra_dirs: Iterable[str] = (), *, shipped: bool = True, status: Sequence[str] = ("stable",)
) -> Signatures:
    """The shipped signatures, those of the user's configuration folder and those below `extra_dirs`, sorted by id.

    A user's signature replaces a shipped one of the same id. status: which shipped ones (stable, draft, retired); of the
    user's own all but the retired. Raises UsageError where one of the user's files is wrong, naming each problem.
    """
    found: dict[str, Signature] = {}
    if shipped:
        for row in _shipped(os.path.join(data.base(), "rules"))[0]:
            if row.status in status:
                found[row.id] = row
    for folder in (*user_folders(), *extra_dirs):
        place = os.path.abspath(folder)
        if not os.path.exists(place):
            raise UsageError(
                "no signatures there",
                why="the folder does not exist",
                where=str(folder),
                help="name a folder with .toml files",
            )
        for row in _rows(place, f"user-{_short(place)}", False)[0]:
            if row.status != "retired":
                found[row.id] = row
    return tuple(found[key] for key in sorted(found))


@lru_cache(maxsize=1)
def _shipped(base: str) -> tuple[Signatures, tuple[str, ...]]:
    """The signatures, and what is wrong with others. Read once: what ships does not change while a process reads many logs."""
    rows, problems = _rows(base, "rules", True)
    return tuple(rows), tuple(problems)


def unusable() -> tuple[str, ...]:
    """What is wrong with shipped signatures: those are left out. Empty unless a file is damaged or half written."""
    return _shipped(os.path.join(data.base(), "rules"))[1]


def user_folders() -> tuple[str, ...]:
    """The folder for signatures in the user's configuration (XDG_CONFIG_HOME, ~/.config), where it exists."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    place = os.path.join(base, "gpu-forensics", "signatures")
    return (place,) if os.path.isdir(place) else ()


def anchors(signatures: Iterable[Signature]) -> list[Anchor]:
    """What the scan must look for so that every signature can match, with the lines it wants around each hit."""
    every = tuple(signatures)
    known, found = _last[0]
    if len(every) != len(known) or not all(map(is_, every, known)):
        found = tuple(anchor for one in every for anchor in _anchors(one))
        _last[0] = every, found
    return list(found)


#: the signatures that were asked for last, with their anchors
_last: list[tuple[Signatures, tuple[Anchor, ...]]] = [((), ())]


def _anchors(one: Signature) -> Iterator[Anchor]:
    before, after = one.rest.get("keep", (2, 6))
    window = one.rest.get("window", 12) if one.rest.get("nearby") or one.rest.get("not_nearby") else 0
    for literal in one.anchor_literals:
        yield Anchor(literal.encode(), max(before, window), max(after, window), one.id, alone=not one.trusted)


def read_entries(path: str) -> list[dict[str, Any]]:
    """The signatures of one TOML file: the file itself, or each of its [[signature]]. Raises tomllib.TOMLDecodeError, OSError."""
    content = data.read_toml(path)
    several = content.get("signature")
    return [dict(one) for one in several] if isinstance(several, list) else [content]


def compile_all(out_dir: str) -> list[str]:
    """Writes everything compiled (tables and signatures) into a folder, for the build of a wheel. Out: the files' names."""
    return data.write_compiled(out_dir, [*data.table_parts(), *_parts(os.path.join(data.base(), "rules"), "rules")])


def _parts(base: str, name: str) -> list[tuple[str, Callable[[], Any]]]:
    files = data.toml_files(base)
    families = sorted({_family(path, base) for path in files})
    parts: list[tuple[str, Callable[[], Any]]] = [(f"{name}/_index", partial(_index, base, files))]
    parts += [(f"{name}/{family}/_details", partial(_details, base, files, family)) for family in families]
    return parts


def _rows(base: str, name: str, trusted: bool) -> tuple[list[Signature], list[str]]:
    """The signatures below a folder, and what is wrong with others: of the user's own that is an error."""
    files = data.toml_files(base)
    stamp = data.stamp_of(files)
    index = data.compiled(f"{name}/_index", stamp, partial(_index, base, files), shipped=trusted)
    if index["problems"] and not trusted:
        raise UsageError(
            "signatures cannot be used",
            why=f"{len(index['problems'])} problem(s)",
            where="\n         ".join(index["problems"][:20]),
            help="forensics signatures check DIR shows each with its line",
        )

    def details(key: str) -> Mapping[str, Any]:
        build = partial(_details, base, files, key)
        found: Mapping[str, Any] = data.compiled(f"{name}/{key}/_details", stamp, build, shipped=trusted)
        return found

    rows = [
        Signature(
            id, role, category, domain, confidence, specificity, status, tuple(literals), tuple(any_literals), word, rest,
            trusted, os.path.join(base, source), family, details,
        )
        for id, role, category, domain, confidence, specificity, status, literals, any_literals, word, rest, source, family
        in index["rows"]
    ]  # fmt: skip
    return rows, index["problems"]


def _index(base: str, files: Sequence[str]) -> dict[str, Any]:
    """What is compiled of a folder: a row a signature, and the problems that kept others out."""
    rows, problems = [], []
    for path in files:
        entries, wrong = entries_of(path)
        problems += [str(problem) for problem in wrong]
        rows += [_row(entry, path, base) for entry in entries]
    return {"rows": rows, "problems": problems}


def entries_of(path: str) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The well-formed signatures of a file, and what is wrong with it and the others."""
    from forensics.match.schema import Problem, check_shape

    try:
        entries = read_entries(path)
        with open(path, encoding="utf-8") as file:
            source = file.read()
    except (OSError, ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        return [], [Problem(path, int(line[1]) if line else 1, f"not TOML: {error}")]
    good, problems = [], []
    for number, entry in enumerate(entries):
        wrong = check_shape(entry, path, number, source)
        problems += wrong
        if not wrong:
            good.append(entry)
    return good, problems


def _row(entry: Mapping[str, Any], path: str, base: str) -> list[Any]:
    match = entry["match"]
    literals, several = match.get("literals", []), match.get("any_literals", [])
    return [
        entry["id"],
        entry["role"],
        entry.get("category"),
        entry.get("domain") or entry["id"].partition(".")[0],
        entry.get("confidence", "supported"),
        entry.get("specificity", 50),
        entry.get("status", "stable"),
        literals,
        several,
        whole_word(literals, several),
        {key: value for key, value in match.items() if key not in _COLUMNS},
        os.path.relpath(path, base),
        _family(path, base),
    ]


def _details(base: str, files: Sequence[str], family: str) -> dict[str, Any]:
    found = {}
    for path in files:
        if _family(path, base) == family:
            for entry in entries_of(path)[0]:
                found[entry["id"]] = {key: value for key, value in entry.items() if key not in _NOT_DETAILS}
    return found


def whole_word(literals: Sequence[str], any_literals: Sequence[str]) -> str:
    """The longest word of the anchor that is whole in any text holding it (words at its ends may go on there), or ""."""
    chosen = anchors_of(tuple(literals), tuple(any_literals))
    if len(chosen) != 1:
        return ""
    words = re.findall(r"(?<=[^A-Za-z0-9_])[A-Za-z0-9_]{4,}(?=[^A-Za-z0-9_])", chosen[0])
    return max(words, key=len, default="")


def _family(path: str, base: str) -> str:
    """The folder directly below the base, or the file's own name."""
    return os.path.relpath(path, base).split(os.sep)[0].removesuffix(".toml")


def _short(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
