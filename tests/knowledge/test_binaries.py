"""Which GPUs a binary holds code for: built here with nvcc where there is one, and by hand where there is not."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from forensics.errors import ForensicsError
from forensics.knowledge.binaries import scan

SOURCE = "__global__ void k(float* x) { x[threadIdx.x] *= 2; }\nvoid run(float* x) { k<<<1, 32>>>(x); }\n"
NVCC = shutil.which("nvcc")


def fatbin(*entries: tuple[int, int, int]) -> bytes:
    """A container of (kind, SM number, flags) entries with 8 bytes of content each."""
    body = b""
    for kind, number, flags in entries:
        body += struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, 8, 0, 0, 8, 1, number, 0, 0, flags, 0, 0) + b"\0" * 8
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def targets(path: Path) -> list[tuple[str, str, int]]:
    return [(c.target, c.kind, c.count) for one in scan([str(path)]) for c in one.code]


def test_entries_of_a_fatbin(tmp_path: Path) -> None:
    file = tmp_path / "k.fatbin"
    file.write_bytes(
        fatbin((2, 90, 0x100011), (2, 90, 0x100011), (2, 100, 0x1200011), (1, 120, 0x8011))
        + b"\0" * 12
        + fatbin((2, 80, 0x11))
    )
    assert targets(file) == [
        ("sm_80", "cubin", 1),
        ("sm_90a", "cubin", 2),
        ("sm_100f", "cubin", 1),
        ("compute_120", "ptx", 1),
    ]
    found = scan([str(file)])[0]
    assert found.can_run("sm_103") and found.partly("sm_103") == ("sm_100f",)
    assert found.partly("sm_121") == ("compute_120",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"\x7fELF",
        b"\x7fELF" + b"\xff" * 200,
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60),
        fatbin((2, 90, 0x11))[:40],
    ],
)
def test_damaged_files_hold_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.cubin"
    file.write_bytes(content)
    assert targets(file) == []


def test_what_is_cut_off_is_named_and_not_said_to_hold_nothing(tmp_path: Path) -> None:
    whole = Path(sys.executable).read_bytes()
    for name, content in (("whole.so", whole), ("cut.so", whole[: len(whole) // 2]), ("text.so", b"no library")):
        (tmp_path / name).write_bytes(content)
    damaged: list[str] = []
    assert scan([str(tmp_path)], damaged) == [] and [Path(name).name for name in damaged] == ["cut.so"]
    (tmp_path / "half.whl").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ForensicsError, match="cannot read"):
        scan([str(tmp_path / "half.whl")])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ForensicsError, match="no such file"):
        scan([str(tmp_path / "nothing")])


def test_wheels_and_folders(tmp_path: Path) -> None:
    wheel = tmp_path / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pkg/ops.fatbin", fatbin((2, 90, 0x100011)))
        archive.writestr("pkg/readme.txt", "no code")
    folder = tmp_path / "site-packages"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.cubin").write_bytes(fatbin((2, 120, 0x1100011)))
    (folder / "pkg" / "b.py").write_text("x = 1")
    assert [(os.path.basename(one.path), one.code[0].target) for one in scan([str(wheel), str(folder)])] == [
        ("ops.fatbin", "sm_90a"),
        ("a.cubin", "sm_120a"),
    ]
    assert "!" in scan([str(wheel)])[0].path


@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100f", "sm_120a", "compute_90a"])
def test_what_nvcc_builds(tmp_path: Path, target: str) -> None:
    source = tmp_path / "k.cu"
    source.write_text(SOURCE)
    arch = target.replace("sm_", "compute_")
    out = tmp_path / "k.fatbin"
    done = subprocess.run(
        [str(NVCC), "-gencode", f"arch={arch},code={target}", "-fatbin", str(source), "-o", str(out)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"this nvcc does not build {target}")
    kind = "ptx" if target.startswith("compute") else "cubin"
    assert targets(out) == [(target, kind, 1)]
    if kind == "cubin":
        cubin = tmp_path / "plain.cubin"
        subprocess.run(
            [str(NVCC), f"-arch={target}", "-cubin", str(source), "-o", str(cubin)], check=True, capture_output=True
        )
        assert targets(cubin) == [(target, "cubin", 1)]


@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
def test_a_host_library_with_several_targets(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(SOURCE)
    library = tmp_path / "libk.so"
    pairs = [("compute_80", "sm_80"), ("compute_90a", "sm_90a"), ("compute_90", "compute_90")]
    flags = [flag for arch, code in pairs for flag in ("-gencode", f"arch={arch},code={code}")]
    done = subprocess.run(
        [str(NVCC), *flags, "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", str(source), "-o", str(library)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("this nvcc cannot link a library")
    assert {(t, k) for t, k, _ in targets(library)} == {("sm_80", "cubin"), ("sm_90a", "cubin"), ("compute_90", "ptx")}
    assert scan([str(library)])[0].can_run("sm_120")
