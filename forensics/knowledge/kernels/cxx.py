"""Takes a C++ kernel name apart. In: a demangled name; out: function path, template arguments, parameters. Sample:

read("void ns::f<4, ns::Op<float>, 2ul>(int, float*)")
-> Spelled(path="ns::f", arguments=("4", "ns::Op<float>", "2ul"), parameters=("int", "float*"))
"""

from __future__ import annotations

import re
from typing import NamedTuple

from forensics.ingest.pattern import Pattern

_RETURN = Pattern(r"(?:void|bool|int|float|auto|__global__ void|\[clone[^\]]{0,40}\])\s+")
_OPEN, _CLOSE = "<([{", ">)]}"
_MARK = Pattern(r"[<>(){}\[\],]")
_MAX_PARTS = 600
_INTEGER = Pattern(r"(?:\([\w:]{1,200}\))?(-?\d{1,9})(?:u|l|ul|U|L|UL)?\Z")
_TUPLE = Pattern(r"cute::(?:tuple|Shape)<")


class Spelled(NamedTuple):
    """path: the function with its namespaces, without arguments; the lists as printed."""

    path: str
    arguments: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def function(self) -> str:
        """The last name of the path."""
        return self.path.rsplit("::", 1)[-1]


def read(name: str) -> Spelled:
    """Parts of a demangled kernel name; parts that are missing are empty."""
    text = _RETURN.sub("", name, count=1) if _RETURN.match(name) else name
    text = text.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    first = _MARK.search(text)
    if first is None:
        return Spelled(text.strip(), (), ())
    path = text[: first.start()].strip()
    arguments: tuple[str, ...] = ()
    at = first.start()
    if first[0] == "<":
        arguments, at = parts(text, at + 1)
    parameters: tuple[str, ...] = ()
    rest = text[at:].lstrip()
    if rest.startswith("("):
        parameters, _ = parts(rest, 1)
    return Spelled(path, arguments, parameters)


def parts(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Comma-separated parts from `at` up to the bracket that closes them, and the index behind that bracket."""
    depth, begin = 0, at
    found: list[str] = []
    while mark := _MARK.search(text, at):
        at = mark.end()
        sign = mark[0]
        if sign == ">" and text[at - 2 : at - 1] == "-":
            continue
        if sign in _OPEN:
            depth += 1
        elif sign in _CLOSE:
            depth -= 1
            if depth < 0:
                found.append(text[begin : at - 1].strip())
                return tuple(p for p in found if p), at
        elif depth == 0 and len(found) < _MAX_PARTS:
            found.append(text[begin : at - 1].strip())
            begin = at
    found.append(text[begin:].strip())
    return tuple(p for p in found if p), len(text)


def inside(text: str, opening: str) -> tuple[str, ...]:
    """Template arguments of the first `opening` ("CollectiveMma<"), empty where it does not stand there."""
    at = text.find(opening)
    return parts(text, at + len(opening))[0] if at >= 0 else ()


def integer(text: str) -> int | None:
    """The number of "128", "128u", "(Enum)2"; None for anything else."""
    found = _INTEGER.match(text.strip())
    return int(found[1]) if found else None


def shape(text: str) -> tuple[int, ...]:
    """Numbers of a cute tuple ("cute::tuple<cute::C<64>, cute::C<128>, cute::_32>"); empty where one is no number."""
    found = _TUPLE.match(text)
    if not found:
        return ()
    numbers = []
    for part in parts(text, found.end())[0]:
        number = re.fullmatch(r"cute::(?:C<|constant<\w+, |_|Int<)(\d{1,6})u?l?>?", part)
        if not number:
            return ()
        numbers.append(int(number[1]))
    return tuple(numbers)
