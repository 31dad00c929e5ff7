"""Archives and compression: nothing is written, nothing is followed, nothing unpacks without end."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from forensics import analyze
from forensics.ingest import ReadOptions, read, streams
from forensics.model.source import Skipped

from . import logs

CRASH = logs.crash("boom").encode()


def tar(members: list[tuple[str, bytes | None, bytes, str]]) -> bytes:
    """(name, content or None, type, link target) of each member."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    return out.getvalue()


def why(skipped: tuple[Skipped, ...]) -> str:
    return "; ".join(f"{one.name}: {one.why}" for one in skipped)


def test_names_that_climb_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`..`, absolute names, links and devices: read in memory or left out, never written and never followed."""
    secret = tmp_path / "secret.log"
    secret.write_bytes(logs.crash("the secret").encode())
    inside = tmp_path / "in"
    inside.mkdir()
    monkeypatch.chdir(inside)
    packed = tar([
        ("../../climbed.log", CRASH, tarfile.REGTYPE, ""), (str(tmp_path / "absolute.log"), CRASH, tarfile.REGTYPE, ""),
        ("link.log", None, tarfile.SYMTYPE, str(secret)), ("hard.log", None, tarfile.LNKTYPE, str(secret)),
        ("zero", None, tarfile.CHRTYPE, ""), ("pipe", None, tarfile.FIFOTYPE, ""),
    ])  # fmt: skip
    (inside / "a.tar").write_bytes(packed)
    with zipfile.ZipFile(inside / "a.zip", "w") as archive:
        archive.writestr("../climbed.log", CRASH)
        archive.writestr("/absolute.log", CRASH)
    before = sorted(tmp_path.rglob("*"))
    for name, count in (("a.tar", 2), ("a.zip", 2)):
        incident = analyze([name])
        assert len(incident.sources or incident.coverage.sources) == count
        assert not incident.coverage.skipped
        assert "the secret" not in repr(incident)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["gz", "bz2", "zip"])
def test_a_bomb_is_defused_by_its_ratio(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RATIO_FROM", 1 << 20)
    monkeypatch.setattr("forensics.ingest.inputs.RATIO_FROM", 1 << 20)
    zeros = b"a" * (40 << 20)
    if kind == "zip":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("b.log", zeros)
        bomb = out.getvalue()
    else:
        bomb = (gzip if kind == "gz" else bz2).compress(zeros, 9)
    intake = read([bomb, CRASH], ())
    assert "bomb" in why(intake.skipped)
    assert sum(source.bytes for source in intake.sources) < 4 << 20


def test_size_and_count_are_limited_over_all_levels() -> None:
    """Archives in archives share one allowance: sixteen of sixteen are not two hundred and fifty-six."""
    inner = tar([(f"{n}.log", b"line\n", tarfile.REGTYPE, "") for n in range(16)])
    outer = tar([(f"{n}.tar", inner, tarfile.REGTYPE, "") for n in range(16)])
    few = read([outer], (), ReadOptions(archive_members=40))
    assert len(few.sources) < 40 and "limit" in why(few.skipped)
    small = read([outer], (), ReadOptions(archive_bytes=3 * len(inner)))
    assert len(small.sources) < 48 and "limit" in why(small.skipped)


def test_depth_is_limited() -> None:
    packed = CRASH
    for level in range(8):
        packed = tar([(f"{level}.tar", packed, tarfile.REGTYPE, "")])
    intake = read([packed, CRASH], ())
    assert max(source.name.count("!") for source in intake.sources) <= 3
    squeezed = CRASH
    for _ in range(8):
        squeezed = gzip.compress(squeezed)
    intake = read([squeezed, CRASH], ())
    assert not any(b"boom".decode() in line.text for line in intake.lines if line.source > 0)


def test_a_header_without_end_is_refused() -> None:
    """A tar header of attributes is read into memory whole: it has to be small."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 64 << 20
    bomb = info.tobuf() + b"\0" * (2 << 20)
    intake = read([bomb, CRASH], ())
    assert "a header of more than 1 MB" in why(intake.skipped)


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.95])
def test_what_is_torn_is_read_as_far_as_it_goes(cut: float) -> None:
    for packed in (gzip.compress(CRASH * 50), bz2.compress(CRASH * 50), tar([("a.log", CRASH * 50, tarfile.REGTYPE, "")])):
        intake = read([packed[: int(len(packed) * cut)], CRASH], ())
        assert intake.sources and (intake.skipped or cut > 0.9)


def test_a_zip_with_random_damage_is_a_sentence() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", CRASH * 20)
    content = bytearray(out.getvalue())
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        analyze([bytes(damaged), CRASH])


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    analyze([tar([("a.log", CRASH, tarfile.REGTYPE, "")]), gzip.compress(CRASH)])
    assert os.listdir(tmp_path) == []
