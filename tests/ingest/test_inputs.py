"""What can be opened, and what is said about what cannot."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from forensics.errors import ForensicsError
from forensics.ingest import Anchor, ReadOptions, files, inputs, read
from forensics.ingest.assemble import Taken
from forensics.ingest.inputs import Opened
from forensics.ingest.options import DEFAULT
from forensics.model.source import Skipped

TEXT = b"".join(b"[2026-11-29 20:15:20 TP1] line %d\n" % n for n in range(3000))
NONE = [Anchor(b"not in there")]
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_compression_is_known_by_content(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "misleading.txt"
    path.write_bytes(PACKERS[kind](TEXT))  # type: ignore[no-untyped-call]
    intake = read([path], NONE)
    assert intake.sources[0].compression == kind
    assert (intake.sources[0].lines, intake.sources[0].bytes) == (3000, len(TEXT))
    assert not intake.skipped


@pytest.mark.parametrize("kind", PACKERS)
def test_several_members_in_a_row(kind: str) -> None:
    packed = PACKERS[kind](TEXT)  # type: ignore[no-untyped-call]
    assert read([packed + packed], NONE).sources[0].lines == 6000


@pytest.mark.parametrize("kind", PACKERS)
def test_a_cut_file_is_read_as_far_as_it_goes(kind: str) -> None:
    packed = PACKERS[kind](os.urandom(1_500_000).hex().encode() + b"\n" + TEXT)  # type: ignore[no-untyped-call]
    intake = read([packed[: len(packed) // 2]], NONE)
    assert intake.sources[0].bytes > 10_000
    assert len(intake.skipped) == 1 and "early" in intake.skipped[0].why


def test_a_damaged_gzip_says_so() -> None:
    packed = bytearray(gzip.compress(os.urandom(200_000).hex().encode()))
    packed[len(packed) // 2] ^= 0xFF
    intake = read([bytes(packed)], NONE)
    assert intake.skipped and "damaged" in intake.skipped[0].why


def test_a_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(b"\n" * 30_000_000)
    intake = read([bomb], NONE, ReadOptions(archive_bytes=4_000_000))
    assert intake.sources[0].bytes <= 6_000_000
    assert "limit" in intake.skipped[0].why


def _tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_archives_are_containers(tmp_path: Path) -> None:
    members = {
        "run/rank_0.log": TEXT,
        "run/rank_1.log.gz": gzip.compress(TEXT),
        "run/model.bin": bytes(range(256)) * 40,
    }
    (tmp_path / "a.tgz").write_bytes(_tar(members, "w:gz"))
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rank_0.log", TEXT)
        archive.writestr("inner.tar", _tar({"deep.log": TEXT}))
    intake = read([tmp_path / "a.tgz", tmp_path / "b.zip"], NONE)
    names = [source.name.removeprefix(str(tmp_path) + "/") for source in intake.sources]
    assert names == ["a.tgz!run/rank_0.log", "a.tgz!run/rank_1.log.gz", "b.zip!rank_0.log", "b.zip!inner.tar!deep.log"]
    assert [source.default_rank.label for source in intake.sources if source.default_rank] == [
        "rank 0",
        "rank 1",
        "rank 0",
    ]
    assert [skip.name.rsplit("!", 1)[1] for skip in intake.skipped] == ["run/model.bin"]


def test_too_many_members(tmp_path: Path) -> None:
    data = _tar({f"{n}.log": TEXT for n in range(20)})
    intake = read([data], NONE, ReadOptions(archive_members=5))
    assert len(intake.sources) == 5 and "limit" in intake.skipped[0].why


def test_folders_patterns_and_doubles(tmp_path: Path) -> None:
    for name in ("b/rank_1.log", "a/rank_0.log", "a/.hidden", "c/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(TEXT)
    (tmp_path / "c" / "core").write_bytes(b"\x7fELF" + bytes(range(32)) * 100)
    intake = read([tmp_path, str(tmp_path / "*" / "rank_*.log"), tmp_path / "a" / "rank_0.log"], NONE)
    assert [Path(source.name).name for source in intake.sources] == ["rank_0.log", "rank_1.log", "notes.txt"]
    assert [Path(skip.name).name for skip in intake.skipped] == ["core"]


def test_a_file_beside_a_link_to_it_is_read_once_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "rank_3.log").write_text("a\n")
    (tmp_path / "again").mkdir()
    for link in ("latest.log", "rank_9.log", "again/b.log"):
        (tmp_path / link).symlink_to(tmp_path / "rank_3.log")
    (tmp_path / "other.log").symlink_to(tmp_path / ".hidden")
    (tmp_path / ".hidden").write_text("b\n")
    names = [str(tmp_path / name) for name in ("other.log", "rank_3.log")]
    assert [source.name for source in read([str(tmp_path)], []).sources] == names
    assert [source.name for source in read([str(tmp_path / "latest.log"), names[1], names[1]], []).sources] == names[1:]


def test_a_file_that_became_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.log").write_text("a\n")
    size_of = files._size

    def swapped(item: str | bytes) -> int | None:
        size = size_of(item)
        if str(item).endswith("1.log"):
            os.unlink(item)
            os.mkfifo(item)
        return size

    monkeypatch.setattr(files, "_size", swapped)
    intake = read([str(tmp_path)], [])
    assert [Path(source.name).name for source in intake.sources] == ["0.log", "2.log"]
    assert [Path(skipped.name).name for skipped in intake.skipped] == ["1.log"] and not intake.skipped[0].harmless


def test_a_file_that_becomes_a_pipe_right_before_it_is_opened_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.write_text("a\n")
    look = os.stat

    def swapped(name: str, **how: bool) -> os.stat_result:
        seen = look(name, **how)
        if str(name) == str(path) and stat.S_ISREG(seen.st_mode):
            path.unlink()
            os.mkfifo(path)
        return seen

    skipped: list[Skipped] = []
    monkeypatch.setattr(inputs.os, "stat", swapped)
    assert list(inputs.open_one(str(path), DEFAULT, skipped)) == []
    assert [one.name for one in skipped] == [str(path)] and not skipped[0].harmless


def test_a_folder_that_cannot_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.log").write_text("a\n")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    intake = read([str(tmp_path)], [])
    assert [(Path(skipped.name).name, skipped.why) for skipped in intake.skipped] == [("closed", "permission denied")]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(TEXT)
    intake = read([tmp_path / "a.log", tmp_path / "missing.log", str(tmp_path / "no*where")], NONE)
    assert sorted(skip.why for skip in intake.skipped) == ["no file matches this pattern", "no such file or directory"]
    with pytest.raises(ForensicsError) as caught:
        read([tmp_path / "missing.log"], NONE)
    assert caught.value.code == 4 and "missing.log" in str(caught.value)


def test_a_pipe_without_a_writer_is_read_once_it_has_one(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    if os.fork() == 0:
        path.write_bytes(TEXT)
        os._exit(0)
    assert read([path], NONE).sources[0].lines == 3000
    os.wait()


def test_recorder_dumps_are_side_inputs(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps({"version": "2.9", "entries": []}, protocol=2))
    (tmp_path / "dump.json").write_text(json.dumps({"pg_config": {}, "version": "2.9", "entries": []}))
    (tmp_path / "a.log").write_bytes(TEXT)
    intake = read([tmp_path], NONE)
    assert sorted(Path(name).name for name, _ in intake.blobs) == ["dump.json", "nccl_trace_rank_0"]
    assert len(intake.sources) == 1


def test_many_files_in_several_processes(tmp_path: Path) -> None:
    for n in range(40):
        (tmp_path / f"rank_{n}.log").write_bytes(TEXT + b"[rank%d]: BOOM here\n" % n)
    anchors = [Anchor(b"BOOM", 1, 1)]
    one = read([tmp_path], anchors, ReadOptions(processes=1))
    three = read([tmp_path], anchors, ReadOptions(processes=3))
    assert three.lines == one.lines and three.sources == one.sources and three.activity == one.activity
    assert len(one.marks[b"BOOM"]) == 40


def test_an_empty_input() -> None:
    intake = read([b""], NONE)
    assert (intake.sources[0].lines, intake.lines) == (0, [])


@pytest.mark.parametrize("processes", [1, 2])
def test_a_log_that_became_shorter_while_it_was_read_is_said(tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever rotates it copies it and empties it: most of it was never seen, and that nothing failed in it nobody knows."""
    log = tmp_path / "engine.log"
    log.write_bytes(b"step 1 loss 2.0\n" * 300_000)
    size = log.stat().st_size
    options = ReadOptions(processes=processes)
    assert not read([str(log)], [], options).skipped
    log.write_bytes(b"\xef\xbb\xbf" + b"step 1 loss 2.0\n" * 9)
    assert not read([str(log)], [], options).skipped  # a mark at the beginning is no part of the text
    log.write_bytes(b"step 1 loss 2.0\n" * 300_000)
    take_one = files.take_one
    monkeypatch.setattr(files, "BIG", 1_000_000)

    def emptied(opened: Opened, *rest: Any, **named: Any) -> Taken:
        os.truncate(log, 1_600)
        taken: Taken = take_one(opened, *rest, **named)
        return taken

    monkeypatch.setattr(files, "take_one", emptied)
    (skipped,) = read([str(log)], [], options).skipped
    assert "became shorter" in skipped.why and skipped.bytes is not None and 0 < skipped.bytes < size


def test_standard_input_that_was_closed_before_the_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ForensicsError, match="closed"):
        read(["-"], [])
