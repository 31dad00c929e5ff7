"""The cache is believed only where nobody else could have written it, and where it fits what it was made from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from forensics import data

KEY = "trust/cache"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of our own with one true entry in it."""
    place = tmp_path / "cache"
    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(place))
    data._memory.pop(KEY, None)
    assert _asked("stamp") == "built"
    return place


def _asked(stamp: str) -> object:
    data._memory.pop(KEY, None)
    return data.compiled(KEY, stamp, lambda: "built", shipped=False)


def _poison(folder: Path, stamp: str = "stamp", version: int = data.FORMAT) -> Path:
    """The entry with a foreign value in it."""
    (path,) = folder.glob("*.json")
    path.write_text(json.dumps([version, stamp, "poison"]))
    return path


def test_an_entry_of_ours_is_believed(folder: Path) -> None:
    _poison(folder)
    assert _asked("stamp") == "poison"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
@pytest.mark.parametrize("place", ["file", "folder"])
def test_loose_permissions(folder: Path, place: str, mode: int) -> None:
    path = _poison(folder)
    if place == "file":
        path.chmod(mode)
    else:
        folder.chmod(mode | 0o700)
    assert _asked("stamp") == "built"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_foreign_owner(folder: Path, place: str) -> None:
    path = _poison(folder)
    os.chown(path if place == "file" else folder, 65534, 65534)
    assert _asked("stamp") == "built"


def test_another_owner_by_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _poison(folder)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert _asked("stamp") == "built"


def test_a_wrong_stamp_and_a_wrong_version(folder: Path) -> None:
    _poison(folder, stamp="other")
    assert _asked("stamp") == "built"
    _poison(folder, version=data.FORMAT + 1)
    assert _asked("stamp") == "built"


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    path = _poison(folder)
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert _asked("stamp") == "built"


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "[1]", "null", '[1, "stamp"]', "\x00"])
def test_a_damaged_entry_is_made_anew(folder: Path, content: str) -> None:
    (path,) = folder.glob("*.json")
    path.write_text(content)
    assert _asked("stamp") == "built"


@pytest.mark.parametrize("change", ["mode", "owner", "content", "link"])
def test_compiled_patterns_of_somebody_else_are_not_loaded(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of compiled patterns is read only where nobody else could have written it, and only whole."""
    from forensics.ingest import compiled

    monkeypatch.setenv("FORENSICS_CACHE_DIR", str(tmp_path))
    content = compiled.marshal.dumps({("x", 0): (32, b"", 0, {}, (None,))})
    data.write_own(compiled._path(), compiled._stamp(content) + content)
    assert compiled._read()
    path = Path(compiled._path())
    if change == "mode":
        path.chmod(0o666)
    elif change == "owner":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    elif change == "content":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    assert compiled._read() == {}
