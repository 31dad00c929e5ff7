"""Finds the shipped data (`signatures/`) and loads it fast. In: a table's name; out: plain dicts and lists (to read only).
Sample:

    table("facts/gpus") -> {"gpu": [{"sm": "sm_120", "names": ["RTX PRO 6000 Blackwell", …], …}, …]}

TOML is for people and slow to read, so every table is read once and kept as JSON: inside the wheel (`_compiled/`, made at build
time by `write_compiled`), else in the user's cache folder, where a stamp over the sources' sizes and times says whether it is still
true. A cache file that another user could have written, a damaged one and one of another version are ignored and made anew.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

#: raise it whenever the shape of anything compiled changes
FORMAT = 1

#: the folders of `signatures/` that are plain tables (rules/ are compiled by `forensics.match.load`)
TABLES = ("facts", "dialects", "frames", "search", "verdict", "recipes")

_memory: dict[str, tuple[str, Any]] = {}


def root() -> Path:
    """The folder that holds facts/, rules/, dialects/ and frames/: inside the installed package, else beside it."""
    from pathlib import Path

    return Path(base())


@cache
def base() -> str:
    """`root` as text: pathlib takes longer to import than a small log to analyse."""
    here = os.path.dirname(os.path.abspath(__file__))
    shipped = os.path.join(here, "_data")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(here), "signatures")


def table(name: str) -> dict[str, Any]:
    """One TOML table by its path below `signatures/`, without ".toml". Raises FileNotFoundError, tomllib.TOMLDecodeError."""
    path = os.path.join(base(), *name.split("/")) + ".toml"
    found: dict[str, Any] = compiled(name, stamp_of([path]), lambda: read_toml(path))
    return found


def folder(name: str) -> list[tuple[str, dict[str, Any]]]:
    """All TOML files below a folder, as (path below `signatures/`, content), sorted by path."""
    top = base()
    files = toml_files(os.path.join(top, *name.split("/")))
    rows: list[list[Any]] = compiled(f"{name}/_all", stamp_of(files), lambda: _read_all(top, files))
    return [(path, content) for path, content in rows]


def read_toml(path: str) -> dict[str, Any]:
    """Reads one TOML file, uncached. Raises OSError, tomllib.TOMLDecodeError, UnicodeDecodeError."""
    import tomllib

    with open(path, "rb") as file:
        return tomllib.load(file)


def toml_files(place: str) -> list[str]:
    """The TOML files below a folder (or the file itself), sorted; hidden ones left out."""
    if os.path.isfile(place):
        return [place]
    found = []
    for top, folders, files in os.walk(place):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        found += [os.path.join(top, f) for f in files if f.endswith(".toml") and not f.startswith(".")]
    return sorted(found)


def stamp_of(files: Iterable[str]) -> str:
    """What changes when one of the files does: their paths, sizes and times. Raises FileNotFoundError."""
    if _is_installed():
        return "installed"
    parts = []
    for path in files:
        info = os.stat(path)
        parts.append(f"{path}:{info.st_mtime_ns}:{info.st_size}")
    return _digest("\n".join(parts))


def edited_since(files: Iterable[str], moment: float) -> bool:
    """True where a file of a checkout is newer than a moment (seconds since the epoch). Raises FileNotFoundError."""
    return not _is_installed() and any(os.stat(path).st_mtime > moment for path in files)


def compiled(key: str, stamp: str, build: Callable[[], Any], *, shipped: bool = True) -> Any:
    """What `build` returns (plain JSON), from memory, the wheel or the cache where these are of the same stamp.

    key: a path-like name of its own for each thing compiled; shipped: False for the user's own data, never in the wheel.
    """
    kept = _memory.get(key)
    if kept is not None and kept[0] == stamp:
        return kept[1]
    name = _file_name(key)
    value = _load(os.path.join(_compiled_folder(), name), "installed") if shipped and _is_installed() else None
    if value is None:
        path = os.path.join(cache_folder(), f"{_checkout()}.{name}" if shipped else name)
        value = _load(path, stamp, mine=True)
        if value is None:
            value = [build()]
            _store(path, stamp, value)
    _memory[key] = (stamp, value[0])
    return value[0]


def cache_folder() -> str:
    """The user's cache folder for this package (FORENSICS_CACHE_DIR, XDG_CACHE_HOME, ~/.cache); it may not exist."""
    if chosen := os.environ.get("FORENSICS_CACHE_DIR"):
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "gpu-forensics")


def table_parts() -> list[tuple[str, Callable[[], Any]]]:
    """Every table and folder as (key, how to read it): what a build compiles into the wheel."""
    top = base()
    parts: list[tuple[str, Callable[[], Any]]] = []
    for name in TABLES:
        files = toml_files(os.path.join(top, name))
        parts += [(_below(path, top).removesuffix(".toml"), partial(read_toml, path)) for path in files]
        parts.append((f"{name}/_all", partial(_read_all, top, files)))
    return parts


def write_compiled(out_dir: str, parts: Iterable[tuple[str, Callable[[], Any]]]) -> list[str]:
    """Writes compiled parts into a folder (`forensics/_compiled` of a wheel). Out: the files' names."""
    os.makedirs(out_dir, exist_ok=True)
    written = []
    for key, build in parts:
        name = _file_name(key)
        with open(os.path.join(out_dir, name), "w", encoding="utf-8") as file:
            json.dump([FORMAT, "installed", build()], file, separators=(",", ":"), sort_keys=True)
        written.append(name)
    return written


def _read_all(top: str, files: list[str]) -> list[list[Any]]:
    return [[_below(path, top), read_toml(path)] for path in files]


def _file_name(key: str) -> str:
    return key.replace("/", ".") + ".json"


def _below(path: str, top: str) -> str:
    return os.path.relpath(path, top).replace(os.sep, "/")


@cache
def _is_installed() -> bool:
    return os.path.basename(base()) == "_data" and os.path.isdir(_compiled_folder())


def _compiled_folder() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_compiled")


@cache
def _checkout() -> str:
    """Tells the files of one checkout from those of another: both are used in turn, and neither takes the other's place."""
    return _digest(base())[:16]


def _digest(text: str) -> str:
    """Tells changed files from unchanged ones, not friend from foe: hashlib would cost more than reading the tables."""
    import zlib

    content = text.encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(content):08x}{zlib.adler32(content):08x}{len(content):x}"


def read_own(path: str) -> bytes:
    """A file that nobody else could have written; b"" where there is none."""
    try:
        if not _only_mine(path):
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def write_own(path: str, content: bytes) -> None:
    """Writes a cache file in one step; a cache that cannot be written is done without."""
    from forensics.drafts import write_whole

    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, content, mode=0o600)
    except OSError:
        return


def _load(path: str, stamp: str, *, mine: bool = False) -> list[Any] | None:
    """[value] of a compiled file of this format and stamp, else None. mine: only where nobody else could have written it."""
    try:
        if mine and not _only_mine(path):
            return None
        with open(path, "rb") as file:
            content = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, list) or len(content) != 3 or content[:2] != [FORMAT, stamp]:
        return None
    return [content[2]]


def _only_mine(path: str) -> bool:
    user = os.geteuid() if hasattr(os, "geteuid") else None
    for place, kind in ((os.path.dirname(path), stat.S_ISDIR), (path, stat.S_ISREG)):
        info = os.lstat(place)
        if not kind(info.st_mode) or (user is not None and (info.st_uid != user or info.st_mode & 0o022)):
            return False
    return True


def _store(path: str, stamp: str, value: list[Any]) -> None:
    try:
        content = json.dumps([FORMAT, stamp, value[0]], separators=(",", ":"))
    except (ValueError, TypeError):
        return
    write_own(path, content.encode("utf-8", "surrogatepass"))
