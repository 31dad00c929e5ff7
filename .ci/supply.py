"""What the package and its tests stand on. In: the installed packages; out: exact versions, or their licences. Sample:

    python .ci/supply.py lock > .ci/constraints.txt        # every package below gpu-forensics[dev] and torch, one "name==version" a line
    python .ci/supply.py licences > docs/licences.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "gpu-forensics"
#: beside the project's own extras: what the tests of repros run
BESIDE = ("torch", "triton", "hatchling")


def below(name: str, extras: frozenset[str]) -> dict[str, Distribution]:
    """Everything installed that a package needs, directly or not, by name; the package itself too."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(name, extras)]
    while todo:
        one, wanted = todo.pop()
        key = canonicalize_name(one)
        if (key, wanted) in seen:
            continue
        seen.add((key, wanted))
        try:
            found[key] = distribution(one)
        except PackageNotFoundError:
            continue
        for text in found[key].requires or ():
            need = Requirement(text)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (wanted or {""})):
                todo.append((need.name, frozenset(need.extras)))
    return found


def lock() -> Iterator[str]:
    """The lines of a constraints file."""
    every = below(PROJECT, frozenset({"", "dev", "extra", "redact"}))
    for name in BESIDE:
        every |= below(name, frozenset())
    yield "# written by .ci/supply.py lock; the versions that CI was green with"
    for name, one in sorted(every.items()):
        if name != canonicalize_name(PROJECT):
            # a local label (+cpu) names an index, not a release
            yield f"{name}=={one.version.partition('+')[0]}"


def licence_of(one: Distribution) -> str:
    """The licence as the package's metadata states it."""
    said = one.metadata
    if expression := said.get("License-Expression"):
        return str(expression)
    classes = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or () if line.startswith("License ::")]
    named = [name for name in classes if name != "OSI Approved"]
    if named:
        return ", ".join(named)
    text = str(said.get("License") or "").strip()
    return text.splitlines()[0][:60] if text else "not stated in its metadata"


def licences() -> Iterator[str]:
    """The lines of docs/licences.md."""
    run = below(PROJECT, frozenset({""}))
    tests = below(PROJECT, frozenset({"", "dev", "extra", "redact"}))
    yield "# Licences"
    yield ""
    yield "The package itself is MIT. What it stands on, as the packages' metadata say"
    yield "(written by `python .ci/supply.py licences > docs/licences.md`):"
    for title, names in (("Installed with it", run), ("Optional, or for its tests only", {k: v for k, v in tests.items() if k not in run})):
        yield f"\n## {title}\n\n| package | version | licence |\n| --- | --- | --- |"
        for name, one in sorted(names.items()):
            if name != canonicalize_name(PROJECT):
                yield f"| {name} | {one.version} | {licence_of(one)} |"
    yield ""
    yield "A repro runs in a Python that the user names, with the torch that is there; none is installed for it."


def main() -> int:
    """Prints what was asked for."""
    made = {"lock": lock, "licences": licences}
    if len(sys.argv) != 2 or sys.argv[1] not in made:
        print(f"usage: {sys.argv[0]} lock|licences", file=sys.stderr)
        return 2
    print("\n".join(made[sys.argv[1]]()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
