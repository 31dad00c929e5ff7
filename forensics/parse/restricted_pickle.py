"""Reads pickles of plain data without running anything. In: bytes; out: dicts, lists, strings and numbers. Sample:

    loads(b"\\x80\\x04}\\x94\\x8c\\x07version\\x94\\x8c\\x052.10\\x94s.") -> {"version": "2.10"}

A small machine of its own for the opcodes that plain data needs (protocols 2 to 5; semantics: Lib/pickletools.py of CPython). What
would name a class or function, call one, or ask for data from elsewhere raises `UnsafePickle` before anything happens. Python's own
unpickler can be kept from classes, too, but nine bytes make it reserve gigabytes (a memo index, the size of a byte array); here
nothing is reserved that does not stand in the dump.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

MAX_BYTES = 256 * 1024 * 1024

_MARK = object()
_CONSTANTS = {0x4E: None, 0x88: True, 0x89: False}
#: opcode -> bytes of a little-endian number behind it, and whether it has a sign
_NUMBERS = {0x4B: (1, False), 0x4D: (2, False), 0x4A: (4, True)}
#: opcode -> bytes of the length behind it, of text and of bytes
_TEXTS = {0x58: 4, 0x8C: 1, 0x8D: 8}
_BYTES = {0x42: 4, 0x43: 1, 0x8E: 8, 0x54: 4, 0x55: 1}
_MEMO_GET = {0x68: 1, 0x6A: 4}
_MEMO_PUT = {0x71: 1, 0x72: 4}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_LONGS = {0x8A: 1, 0x8B: 4}
#: opcodes that would run or fetch something
_UNSAFE = {
    0x52: "calls something", 0x81: "makes an object", 0x92: "makes an object", 0x6F: "makes an object", 0x69: "makes an object",
    0x62: "sets an object's state", 0x50: "asks for persistent data", 0x51: "asks for persistent data", 0x97: "asks for a buffer",
    0x82: "asks for an extension", 0x83: "asks for an extension", 0x84: "asks for an extension",
}  # fmt: skip
_LONGEST_NUMBER = 64


class UnsafePickle(Exception):
    """The pickle holds more than plain data, is too large, or is broken; the message says which."""


def loads(content: bytes) -> Any:
    """The plain data in a pickle. Raises `UnsafePickle` for everything else."""
    if len(content) > MAX_BYTES:
        raise UnsafePickle(f"{len(content)} bytes, more than {MAX_BYTES}")
    try:
        return _run(content)
    except UnsafePickle:
        raise
    except Exception as error:  # broken pickles stumble in many ways
        raise UnsafePickle(f"cannot be read: {type(error).__name__}: {str(error)[:200]}") from error


def _run(data: bytes) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    number = int.from_bytes
    at, end = 0, len(data)
    while at < end:
        op = data[at]
        at += 1
        if (width := _MEMO_PUT.get(op)) is not None:
            memo[number(data[at : at + width], "little")] = stack[-1]
            at += width
        elif (width := _MEMO_GET.get(op)) is not None:
            stack.append(memo[number(data[at : at + width], "little")])
            at += width
        elif (width := _TEXTS.get(op)) is not None:
            start = at + width
            at = start + number(data[at:start], "little")
            stack.append(_slice(data, start, at).decode("utf-8", "surrogatepass"))
        elif (form := _NUMBERS.get(op)) is not None:
            stack.append(number(_slice(data, at, at + form[0]), "little", signed=form[1]))
            at += form[0]
        elif op == 0x28:
            stack.append(_MARK)
        elif op == 0x7D:
            stack.append({})
        elif op == 0x5D:
            stack.append([])
        elif op == 0x75 or op == 0x73:  # SETITEMS, SETITEM
            items = _to_mark(stack) if op == 0x75 else [stack.pop(-2), stack.pop()]
            _dict(stack).update(zip(map(_key, items[::2]), items[1::2], strict=True))
        elif op == 0x65:
            items = _to_mark(stack)
            _list(stack).extend(items)
        elif op == 0x61:
            item = stack.pop()
            _list(stack).append(item)
        elif op == 0x94:
            memo[len(memo)] = stack[-1]
        elif op in _CONSTANTS:
            stack.append(_CONSTANTS[op])
        elif (count := _TUPLES.get(op)) is not None:
            stack[-count:] = [tuple(stack[-count:])]
        elif op == 0x74:
            stack.append(tuple(_to_mark(stack)))
        elif op == 0x29:
            stack.append(())
        elif op == 0x6C or op == 0x64:  # LIST, DICT
            items = _to_mark(stack)
            stack.append(items if op == 0x6C else dict(zip(map(_key, items[::2]), items[1::2], strict=True)))
        elif (width := _LONGS.get(op)) is not None:
            start = at + width
            at = start + number(data[at:start], "little")
            # no number of a dump is longer; printing a very long one takes its square in time
            stack.append(number(_slice(data, start, at)[-_LONGEST_NUMBER:], "little", signed=True))
        elif op == 0x47:
            import struct

            stack.append(struct.unpack_from(">d", data, at)[0])
            at += 8
        elif (width := _BYTES.get(op)) is not None:
            start = at + width
            at = start + number(data[at:start], "little")
            stack.append(_slice(data, start, at))
        elif op == 0x80:
            at += 1
        elif op == 0x95:
            at += 8
        elif op == 0x30:
            stack.pop()
        elif op == 0x31:
            _to_mark(stack)
        elif op == 0x2E:
            return stack.pop()
        else:
            raise UnsafePickle(_why(op, data, at, stack))
    raise UnsafePickle("is cut off")


def _slice(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise UnsafePickle("is cut off")
    return data[start:end]


def _to_mark(stack: list[Any]) -> list[Any]:
    """What stands above the last mark; the mark goes, too."""
    at = len(stack) - 1
    while stack[at] is not _MARK:
        at -= 1
        if at < 0:
            raise UnsafePickle("has no mark where one is needed")
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _dict(stack: list[Any]) -> dict[Any, Any]:
    if not isinstance(stack[-1], dict):
        raise UnsafePickle("sets an item of something that is no dict")
    return stack[-1]


def _list(stack: list[Any]) -> list[Any]:
    if not isinstance(stack[-1], list):
        raise UnsafePickle("appends to something that is no list")
    return stack[-1]


def _key(value: Any) -> Hashable:
    """A dict's key: hashing a tuple of tuples of tuples could take for ever."""
    if isinstance(value, str | int | float | bytes) or value is None:
        return value
    if isinstance(value, tuple) and all(isinstance(part, str | int) for part in value):
        return value
    raise UnsafePickle("has a key that is neither text nor a number")


def _why(op: int, data: bytes, at: int, stack: list[Any]) -> str:
    """What an opcode that is not for plain data wants."""
    if op == 0x63:  # GLOBAL
        module, name = (data[at : at + 200].split(b"\n") + [b"", b""])[:2]
        return f"names {module.decode('utf-8', 'replace')[:80]}.{name.decode('utf-8', 'replace')[:80]}"
    if op == 0x93 and len(stack) > 1 and all(isinstance(part, str) for part in stack[-2:]):  # STACK_GLOBAL
        return f"names {stack[-2][:80]}.{stack[-1][:80]}"
    return _UNSAFE.get(op, f"has an opcode that plain data does not need (0x{op:02x})")
