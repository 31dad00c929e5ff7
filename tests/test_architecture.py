"""House rules that no linter knows."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "forensics"
MODULES = sorted(PACKAGE.rglob("*.py"))
#: what a start on a log must never pay for
HEAVY = ("rich", "textual", "torch", "jinja2", "msgspec", "yaml", "numpy", "asyncio", "regex", "importlib.metadata")


def tracked() -> list[Path]:
    """The files of the repository; of the folder where there is no git (an unpacked sdist)."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        return [path for path in ROOT.rglob("*") if path.is_file() and not {".venv", ".git"} & set(path.parts)]
    return [ROOT / name for name in found.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400, "split it by what it is about"
    assert path.stem not in ("helpers", "utils", "misc", "common"), "name it after its subject"
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "a file opens with what goes in, what comes out and a sample"


def test_public_names_have_docstrings() -> None:
    bare = []
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            public = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_"
            if public and not ast.get_docstring(node):  # type: ignore[arg-type]
                bare.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")  # type: ignore[attr-defined]
    assert not bare


def test_a_start_is_light() -> None:
    """`import forensics` and the pipeline's modules load none of the heavy libraries."""
    code = (
        "import sys, forensics, forensics.pipeline, forensics.ingest, forensics.parse, forensics.knowledge, "
        "forensics.match, forensics.callpath, forensics.verdict\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_console_pays_only_for_itself(tmp_path: Path) -> None:
    """A report on the console imports nothing of the other faces."""
    log = tmp_path / "a.log"
    log.write_text("[2026-11-29 20:11:02 TP0] Load weight begin. avail mem=93.71 GB\n")
    code = (
        "import sys\nfrom forensics.cli.main import main\n"
        f"main([{str(log)!r}])\nprint([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


#: a log on standard input, its report on the console: what that must not load (each costs as much as some part of the analysis)
SPARED = (
    *HEAVY, "click", "hyperscan", "ahocorasick_rs", "zstandard", "gzip", "bz2", "lzma", "tarfile", "zipfile", "dataclasses",
    "inspect", "ast", "tokenize", "pathlib", "tempfile", "random", "hashlib", "_hashlib", "logging", "subprocess", "threading",
    "multiprocessing", "argparse", "locale", "platform", "uuid", "decimal", "pickle", "copy", "shutil", "socket", "ssl", "tomllib",
    "unittest", "concurrent", "ctypes", "html", "csv",
    "forensics.cli.commands", "forensics.cli.analyze_command", "forensics.match.schema", "forensics.match.linting",
    "forensics.match.explain", "forensics.knowledge.binaries", "forensics.report.json", "forensics.report.contract",
    "forensics.report.html", "forensics.report.markdown", "forensics.redact", "forensics.repro", "forensics.tui",
    "forensics.ingest.follow", "forensics.parse.flight_recorder", "forensics.parse.slurm",
)  # fmt: skip


@pytest.mark.parametrize("face", ["console", "json"])
def test_a_small_log_pays_only_for_itself(face: str, samples: Path, tmp_path: Path) -> None:
    """From the second start on, when tables and patterns lie compiled in the cache."""
    own = {"json": {"forensics.report.json", "forensics.repro"}}.get(face, set())  # with the offer of a repro
    spared = [name for name in SPARED if name not in own]
    code = f"import sys\nfrom forensics.cli.main import main\nmain(['--format', '{face}', '-'])\nprint([n for n in {spared!r} if n in sys.modules])"
    log = b"".join((samples / "all_ranks_moe" / "all_ranks_moe.log").read_bytes().splitlines(keepends=True)[:200])
    environment = {**os.environ, "FORENSICS_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], input=log, capture_output=True, check=True, env=environment)
    assert b"crashed" in done.stdout.lower()
    assert done.stdout.splitlines()[-1] == b"[]"


def test_no_trace_of_a_machine() -> None:
    """Nothing in the repository names the place where it was made."""
    place = re.compile(r"/work/(?:main|shared|dev|\.library)\b|\bpip\.conf\b|extra-index-url|/opt/wheels")
    here = Path(__file__)
    named = []
    for path in tracked():
        if path == here or path.suffix in (".png", ".svg", ".zst", ".gz", ".pickle"):
            continue
        found = place.search(path.read_bytes().decode("utf-8", "replace"))
        if found and "sample_logs" not in path.parts:
            named.append(f"{path.relative_to(ROOT)}: {found[0]}")
    assert not named


def _needed(tree: ast.AST) -> set[str]:
    """Packages that a module imports without being ready to do without them."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        spared = isinstance(node, ast.Try) and any("Error" in ast.unparse(one.type) for one in node.handlers if one.type)
        typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if spared or typing:
            continue
        if isinstance(node, ast.Import):
            found.update(name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        found |= _needed(node)
    return found


def test_what_is_imported_is_installed_with_the_package() -> None:
    """A command must not fail for want of a package that only an extra brings."""
    declared = (ROOT / "pyproject.toml").read_text().split("dependencies = [", 1)[1].split("\n]", 1)[0]
    installed = {name.lower().replace("-", "_") for name in re.findall(r'^  "([\w-]+)', declared, re.MULTILINE)}
    modules = {"pyelftools": "elftools"}
    known = {modules.get(name, name) for name in installed} | set(sys.stdlib_module_names) | {"forensics"}
    known |= {"msgspec", "markupsafe"}  # writes the JSON Schema, which ships as a file; comes with jinja2
    for path in sorted((ROOT / "forensics").rglob("*.py")):
        missing = _needed(ast.parse(path.read_text())) - known
        assert not missing, f"{path.relative_to(ROOT)}: {sorted(missing)}"
