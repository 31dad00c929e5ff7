"""Reads pickles of plain data without running anything. In: bytes; out: dicts, lists, strings and numbers. Sample:

    loads(b"\\x80\\x04}\\x94\\x8c\\x07version\\x94\\x8c\\x052.10\\x94s.") -> {"version": "2.10"}

Never builds an object: whatever names a class or function, or asks for persistent data, raises `UnsafePickle` before anything
happens, and without a class or function no opcode has anything to call. Bounded by the size of the dump.
"""

from __future__ import annotations

from typing import Any

MAX_BYTES = 256 * 1024 * 1024


class UnsafePickle(Exception):
    """The pickle holds more than plain data, is too large, or is broken; the message says which."""


def loads(content: bytes) -> Any:
    """The plain data in a pickle. Raises `UnsafePickle` for everything else."""
    if len(content) > MAX_BYTES:
        raise UnsafePickle(f"{len(content)} bytes, more than {MAX_BYTES}")
    # pickle loads when there is a dump to read: few inputs have one
    import io
    import pickle

    class NothingUnpickler(pickle.Unpickler):
        """Finds no class and no persistent object, whatever the pickle asks for."""

        def find_class(self, module: str, name: str) -> Any:
            raise UnsafePickle(f"names {module[:80]}.{name[:80]}")

        def persistent_load(self, pid: Any) -> Any:
            raise UnsafePickle("asks for persistent data")

    try:
        return NothingUnpickler(io.BytesIO(content)).load()
    except UnsafePickle:
        raise
    except Exception as error:  # broken pickles raise nearly anything
        raise UnsafePickle(f"cannot be read: {type(error).__name__}: {str(error)[:200]}") from error
