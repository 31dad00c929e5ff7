"""What is built: a wheel and an sdist that are the same every time, and that work without the tree they came from."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TREE = ("forensics", "signatures", "tests", "docs", "pyproject.toml", "hatch_build.py", "Makefile", "README.md", "LICENSE")
LOG = ROOT / "sample_logs" / "one_oom" / "one_oom.log"

pytest.importorskip("hatchling")
pytest.importorskip("build")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two builds of one copy of the tree: [wheel, sdist, wheel, sdist]."""
    made = []
    tree = tmp_path_factory.mktemp("tree")
    for name in TREE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "_compiled"))
        else:
            shutil.copy(source, tree / name)
    for name in ("one", "two"):
        out = tmp_path_factory.mktemp(name)
        env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "FORENSICS_CACHE_DIR": str(out / "cache")}
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out / "dist"), str(tree)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        made += [next((out / "dist").glob("*.whl")), next((out / "dist").glob("*.tar.gz"))]
    return made


def test_two_builds_are_equal(built: list[Path]) -> None:
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in built]
    assert digests[:2] == digests[2:]


def test_the_wheel_is_whole(built: list[Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    assert "forensics/py.typed" in names
    assert {"forensics/_compiled/rules._index.json", "forensics/report/page/report.html.j2"} <= names
    assert not [name for name in names if name.startswith(("tests/", ".ci/", ".dev/"))]
    with tarfile.open(built[1]) as sdist:
        inside = {name.split("/", 1)[-1] for name in sdist.getnames()}
    assert {"forensics/pipeline.py", "signatures/facts/gpus.toml", "hatch_build.py", "tests/conftest.py"} <= inside
    assert not [name for name in inside if name.startswith((".ci/", ".dev/"))]


@pytest.mark.parametrize("words", [["--format", "json"], ["--format", "html"], ["--explain"]])
def test_the_wheel_works_alone(built: list[Path], words: list[str], tmp_path: Path) -> None:
    """Unpacked beside nothing of this tree, with a home that cannot be written to."""
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(tmp_path / "site")
    code = f"import sys; sys.path[:] = [p for p in sys.path if p != {str(ROOT)!r}]; sys.path.insert(0, {str(tmp_path / 'site')!r}); import forensics; assert forensics.__file__.startswith({str(tmp_path)!r}); from forensics.cli.main import main; raise SystemExit(main({[str(LOG), *words]!r}))"
    env = {**os.environ, "FORENSICS_CACHE_DIR": "/dev/null/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1 and b"oom_gpu" in done.stdout, done.stderr
