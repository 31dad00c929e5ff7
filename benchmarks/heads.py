"""Chooses what is searched for each literal: `signatures/search/heads.toml`. In: nothing (`make heads`); out: that file. Sample:

    Watchdog caught collective operation timeout  ->  24     its first 24 bytes
    CUDA error: misaligned address                ->  "error: "   a part that is searched for anyway

hyperscan's literal matcher (Vectorscan 5.4.12, src/fdr) sorts the last eight bytes of all literals into eight buckets, by length, then from
their ends; at each place of a text it asks of each bucket whether every byte there, with some bits of the next, stands so in any of its
literals, and only then compares hashes. Such a candidate costs some 25 ns, ten times what a byte costs. So heads are chosen together:
those for which few places of a sample text are candidates. The sample: docstrings of Python's standard library, the words of all
literals in random order, and the healthy sample logs.

One bit a place, in Python's integers: a place is a candidate of a bucket where eight bit sets have a bit in common.
"""

from __future__ import annotations

import ast
import random
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from forensics.ingest.heads import LONGEST, SHORTEST, forms_of, head_of
from forensics.match import load_signatures
from forensics.pipeline import anchors_for

_TOP = Path(__file__).resolve().parent.parent
_OUT = _TOP / "signatures" / "search" / "heads.toml"
#: of each kind of text so many bytes
_SHARE = 300_000
#: bytes that the matcher compares, and what it takes of the next byte (13 bits in all, from 1,000 literals on)
_WIDTH, _LOW = 8, 31
#: literals this long fill so many of its eight buckets: one is for the literal that mends the stride, two for shorter ones
_BUCKETS = 5
_SWEEPS = 5
#: as much as so many candidates costs: a head that is met (short ones are looked for in more text), the last eight bytes of one
_FOUND, _SHORT, _MORE, _ENDS = 500, 20, 5, 2

Pair = tuple[int, int]


def sample_text(literals: Iterable[bytes], share: int) -> bytes:
    """What heads should not be met in: `share` bytes of each kind of text, as far as there are so many."""
    words = sorted({word for literal in literals for word in literal.split()})
    chance = random.Random(share)
    shuffled = b" ".join(chance.choice(words) for _ in range(share // 6))
    logs = b"".join(path.read_bytes() for path in sorted(_TOP.glob("sample_logs/healthy_*/*.log")))
    return b"\n".join((shuffled[:share], _docstrings(share), logs[:share]))


def _docstrings(share: int) -> bytes:
    found: list[bytes] = []
    size = 0
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("**/*.py"))
    random.Random(7).shuffle(paths)
    for path in paths:
        if "test" in str(path) or "site-packages" in str(path):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                found.append(" ".join(text.split()).encode())
                size += len(found[-1])
        if size > share:
            break
    return b"\n".join(found)[:share]


class Places:
    """Bit sets of a text: where a byte, and where a byte before the low bits of another one stands."""

    def __init__(self, text: bytes, wanted: set[Pair]) -> None:
        rows: dict[Pair, bytearray] = {pair: bytearray(len(text) // 8 + 1) for pair in wanted}
        for at, (byte, behind) in enumerate(zip(text, text[1:] + b"\n", strict=True)):
            for pair in ((byte, -1), (byte, behind & _LOW)):
                if pair in rows:
                    rows[pair][at >> 3] |= 1 << (at & 7)
        self._sets = {pair: int.from_bytes(row, "little") for pair, row in rows.items()}

    def of(self, pair: Pair, position: int) -> int:
        """Ends of literals that have the pair so many bytes before their last one."""
        return self._sets[pair] << position


def pairs(suffix: bytes) -> list[Pair]:
    """Of eight bytes, from the last one on: each with what is compared of the byte behind it."""
    return [(suffix[-1], -1), *((suffix[at], suffix[at + 1] & _LOW) for at in range(_WIDTH - 2, -1, -1))]


class Bucket:
    """Some suffixes; candidates: places of the text at which each byte fits any of them."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._counts: list[Counter[Pair]] = [Counter() for _ in range(_WIDTH)]
        self._sets = [0] * _WIDTH

    def add(self, suffix: bytes) -> None:
        for position, pair in enumerate(pairs(suffix)):
            self._counts[position][pair] += 1
            if self._counts[position][pair] == 1:
                self._sets[position] |= self._places.of(pair, position)

    def remove(self, suffix: bytes) -> None:
        for position, pair in enumerate(pairs(suffix)):
            self._counts[position][pair] -= 1
            if not self._counts[position][pair]:
                del self._counts[position][pair]
                whole = 0
                for other in self._counts[position]:
                    whole |= self._places.of(other, position)
                self._sets[position] = whole

    def candidates(self, suffix: bytes = b"") -> int:
        """How many there are, with one more suffix."""
        both = -1
        more = pairs(suffix) if suffix else []
        for position, places in enumerate(self._sets):
            if more and more[position] not in self._counts[position]:
                places |= self._places.of(more[position], position)
            both &= places
        return both.bit_count()


class Choice:
    """Which head of each literal is searched. ends: literal -> its heads, of which one is picked."""

    def __init__(self, ends: dict[bytes, list[bytes]]) -> None:
        self.ends = ends
        self.picked = {one: head_of(one) if head_of(one) in heads else heads[-1] for one, heads in ends.items()}
        text, more = sample_text(ends, _SHARE), sample_text(ends, _SHARE * _MORE)
        suffixes = {head[-_WIDTH:] for heads in ends.values() for head in heads}
        self._places = Places(text, {pair for suffix in suffixes for pair in pairs(suffix)})
        self._met = Counter({head: more.count(head) * _FOUND // _MORE for heads in ends.values() for head in heads if len(head) <= _SHORT})
        self._ending = Counter(last for at in range(len(text)) if (last := text[at : at + _WIDTH]) in suffixes)
        self._used: Counter[bytes] = Counter()
        self._edges: list[bytes] = []
        self._buckets: list[Bucket] = []

    def fill(self) -> None:
        """Puts what is picked into buckets, as the matcher would."""
        suffixes = sorted({head[-_WIDTH:] for head in self.picked.values()}, key=lambda one: one[::-1])
        self._edges = [suffixes[len(suffixes) * number // _BUCKETS][::-1] for number in range(1, _BUCKETS)]
        self._buckets = [Bucket(self._places) for _ in range(_BUCKETS)]
        self._used = Counter(self.picked.values())
        for head in self.picked.values():
            self._bucket(head).add(head[-_WIDTH:])
        print(f"{len(self._used)} heads, {sum(one.candidates() for one in self._buckets)} candidates", file=sys.stderr)

    def improve(self, literal: bytes) -> None:
        """Picks the cheapest head of one literal, all others being as they are."""
        old = self.picked[literal]
        self._bucket(old).remove(old[-_WIDTH:])
        self._used[old] -= 1
        before = {id(one): one.candidates() for one in self._buckets}

        def cost(head: bytes) -> tuple[int, bool, int]:
            bucket, last, is_new = self._bucket(head), head[-_WIDTH:], not self._used[head]
            more = bucket.candidates(last) - before[id(bucket)]
            return more + self._met[head] + is_new * _ENDS * self._ending[last], is_new, -len(head)

        new = self.picked[literal] = min(self.ends[literal], key=cost)
        self._bucket(new).add(new[-_WIDTH:])
        self._used[new] += 1

    def _bucket(self, head: bytes) -> Bucket:
        return self._buckets[sum(head[-_WIDTH:][::-1] >= edge for edge in self._edges)]


def choose(literals: list[bytes]) -> dict[bytes, bytes]:
    """Literal -> the head of it to search for; literals have eight bytes and more."""
    sizes = {one: range(min(SHORTEST, len(one)), len(one) + 1) for one in literals}
    choice = Choice({one: [one[:size] for size in those if _is_text(one[:size])] for one, those in sizes.items()})
    order = sorted(one for one, heads in choice.ends.items() if len(heads) > 1)
    for sweep in range(_SWEEPS):
        choice.fill()
        random.Random(sweep).shuffle(order)
        for literal in order:
            choice.improve(literal)
    choice.fill()
    return choice.picked


def _is_text(part: bytes) -> bool:
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


def shared(literals: Iterable[bytes], shortest: int = 6) -> dict[bytes, bytes]:
    """Literal -> another literal that it holds: the shortest one. None that stands in each frame of a stack, and none with forms."""
    forms = forms_of()
    known = sorted((one for one in literals if len(one) >= shortest - 1 and one not in forms and not _is_frame(one)), key=len)
    found = {}
    for literal in literals:
        if not _is_frame(literal) and literal not in forms:
            inner = next((one for one in known if len(one) < len(literal) and one in literal), None)
            if inner is not None:
                found[literal] = inner
    return found


def _is_frame(literal: bytes) -> bool:
    return b'", line ' in literal or b'File "' in literal


def _rows(literals: list[bytes], picked: dict[bytes, bytes]) -> Iterator[str]:
    for literal in literals:
        head = picked[literal]
        part = str(len(head)) if literal.startswith(head) else _quoted(head)
        yield f"{_quoted(literal)} = {part}"


def _quoted(text: bytes) -> str:
    escaped = text.decode().replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(one):04x}" if ord(one) < 32 or ord(one) == 127 else one for one in escaped) + '"'


def main() -> None:
    """Writes the table anew."""
    literals = sorted({anchor.literal for anchor in anchors_for(load_signatures([])) if _is_text(anchor.literal)})
    forms, inside = forms_of(), shared(literals)
    picked = choose([one[:LONGEST] for one in literals if len(one) >= _WIDTH and one not in inside and one not in forms])
    heads = {one: picked.get(one[:LONGEST], one) for one in literals if one not in inside}
    heads |= {one: heads[other] for one, other in inside.items()}
    rows = list(_rows([one for one in literals if heads[one] != one and one not in forms], heads))
    head = "# Made by `make heads`: of each literal how many of its first bytes are searched, or a part that another one searches.\n\n[heads]\n"
    _OUT.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    print(f"{len(literals)} literals, {len(set(heads.values()))} heads", file=sys.stderr)


if __name__ == "__main__":
    main()
