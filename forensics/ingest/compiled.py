"""Regular expressions that stay compiled between starts. In: a pattern of the package's own; out: `re.Pattern`. Sample:

    pattern_of(r"rank(\\d+)") == re.compile(r"rank(\\d+)")

A start needs about two hundred patterns, and compiling them takes longer than reading a small log. So what `re` makes of each (numbers
for its matcher) lies in the user's cache folder, as Python's own .pyc files lie beside their sources. The file holds for one build of
Python; a damaged one, one of another version and one that another user could have written are ignored. Only patterns that ship with
the package come here, so their number is bounded; never those of a user or learnt from a log.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from typing import Any, AnyStr

from forensics import data

_Row = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]
_Key = tuple[str | bytes, int]

#: so few new ones are not worth writing the file again
_FEW = 4
#: more than the package has: then those that this start did not use are left out
_MOST = 1_000

_kept: dict[_Key, _Row] | None = None
_new: dict[_Key, _Row] = {}
_made: dict[_Key, re.Pattern[Any]] = {}


def pattern_of(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The compiled pattern, from the file of an earlier start where it is there. Raises re.error."""
    key = (source, int(flags))
    made = _made.get(key)
    if made is None:
        made = _made[key] = _revived(source, key)
    return made


def keep() -> None:
    """Writes what this start had to compile, for the next one."""
    if len(_new) <= _FEW:
        return
    rows = {**(_kept or {}), **_new}
    if len(rows) > _MOST:  # those of versions long gone would be read at each start
        rows = {key: row for key, row in rows.items() if key in _made}
    content = marshal.dumps(rows)
    data.write_own(_path(), _stamp(content) + content)
    _new.clear()


def _revived(source: AnyStr, key: _Key) -> re.Pattern[AnyStr]:
    global _kept
    if _kept is None:
        _kept = _read()
    try:
        row = _kept.get(key)
        if row is None:
            row = _new[key] = _compiled(*key)
        return _pattern(source, row)
    except re.error:
        raise
    except Exception:  # another Python keeps its compiler elsewhere
        _new.pop(key, None)
        return re.compile(source, key[1])


def _compiled(source: str | bytes, flags: int) -> _Row:
    """What `re` hands to its matcher."""
    from re import _compiler, _parser  # type: ignore[attr-defined]

    tree = _parser.parse(source, flags)
    code = _compiler._code(tree, flags)
    groups = dict(tree.state.groupdict)
    names: list[str | None] = [None] * tree.state.groups
    for name, number in groups.items():
        names[number] = name
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in code)
    return flags | tree.state.flags, numbers, tree.state.groups - 1, groups, tuple(names)


def _pattern(source: AnyStr, row: _Row) -> re.Pattern[AnyStr]:
    import _sre

    flags, numbers, count, groups, names = row
    made: Any = _sre.compile(source, flags, memoryview(numbers).cast("I").tolist(), count, groups, names)
    return made  # type: ignore[no-any-return]


def _path() -> str:
    return os.path.join(data.cache_folder(), f"patterns.{sys.hexversion >> 16:x}.bin")


def _stamp(content: bytes) -> bytes:
    """Changes with the Python that compiled, and with each byte of what it made."""
    import _sre
    import zlib

    built = f"{sys.version}|{_sre.MAGIC}|{_sre.CODESIZE}|{sys.byteorder}".encode()
    return b"%08x%08x%08x\n" % (zlib.crc32(built), zlib.crc32(content), zlib.adler32(content))


def _read() -> dict[_Key, _Row]:
    raw = data.read_own(_path())
    at = raw.find(b"\n") + 1
    try:
        if at and raw[:at] == _stamp(raw[at:]):
            found: dict[_Key, _Row] = marshal.loads(memoryview(raw)[at:])
            return found
    except (ValueError, EOFError, TypeError):
        pass
    return {}
