"""What repeats is counted, not kept. In: marked lines and their windows as bytes; out: known or new. Sample:

fold.is_new(b"[2026-11-29 20:15:20 TP1] CUDA error", b": an illegal") -> True, then True, True, False …; other rank: True

A line without its digits is its template. Of one template the first three hits are kept, one a rank, one for each different
next word, and each whose window holds a line never kept before. Of the others only the latest, and a count.
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern

_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_WHO = Pattern(rb"(?:[TPDE]P|rank[ =:_]?|Rank |RANK |pid=|default|\[\d{1,6},)(\d{1,10})")
#: copies of one template that are kept whatever they say
_COPIES = 3
#: kept of one template for different ranks or next words
_VARIANTS = 256
_MOST_TEMPLATES = 50_000
#: latest copies: so many blocks, so many single lines, none bigger than this
_LAST_BODIES, _LAST_LINES, _LAST_SIZE = 64, 1024, 16 * 1024


class Fold:
    """counts: template -> hits; kept: template -> (times kept, line of the latest); last: template -> latest copy not kept."""

    __slots__ = ("_bodies", "_pieces_counts", "_pieces_last", "_variants", "counts", "kept", "last")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.kept: dict[int, tuple[int, int]] = {}
        self.last: dict[int, tuple[int, bytes]] = {}
        self._variants: dict[int, set[int]] = {}
        self._bodies: set[int] = set()  # hashes of the lines of kept blocks
        self._pieces_counts: dict[int, int] = {}
        self._pieces_last: dict[int, tuple[int, bytes]] = {}

    def count(self, text: bytes) -> tuple[int, int]:
        """(template, hits with it so far) of a marked line, this one included."""
        template = hash(text.translate(None, _DIGITS))
        counts = self.counts
        seen = counts.get(template, 0) + 1
        if seen > 1 or len(counts) < _MOST_TEMPLATES:
            counts[template] = seen
        return template, seen

    def uncount(self, template: int) -> None:
        """The same line will come again."""
        self.counts[template] -= 1

    def is_new(self, template: int, seen: int, text: bytes, following: bytes) -> bool:
        """One of the first copies, or another rank or next word than any copy kept. following: bytes behind the literal."""
        if seen <= _COPIES:
            return True
        known = self._variants.get(template)
        if known is None:
            if len(self._variants) >= _MOST_TEMPLATES:
                return False
            known = self._variants[template] = set()
        elif len(known) >= _VARIANTS:
            return False
        who = _WHO.search(text, 0, 160)
        variant = hash((who[1] if who else b"", following.partition(b"\n")[0]))
        if variant in known:
            return False
        known.add(variant)
        return True

    def is_known_body(self, body: bytes) -> bool:
        """Every line of it was kept before, numbers and addresses aside. What was not is known from now on."""
        lines = set(map(hash, body.translate(None, _HEX).split(b"\n")))
        if self._bodies.issuperset(lines):
            return True
        if len(self._bodies) < _MOST_TEMPLATES:
            self._bodies |= lines
        return False

    def keep(self, template: int, number: int) -> None:
        """A copy on line `number` was kept."""
        self.kept[template] = (self.kept.get(template, (0, 0))[0] + 1, number)

    def drop(self, template: int, number: int, text: bytes, is_block: bool) -> None:
        """A copy was not kept."""
        last = self.last
        if template in last or len(last) < (_LAST_BODIES if is_block else _LAST_LINES):
            if len(text) <= _LAST_SIZE:
                last[template] = (number, text)

    def repeats(self) -> dict[int, int]:
        """Line number of the latest kept copy -> hits of its template that were not kept."""
        found: dict[int, int] = {}
        for template, total in self.counts.items():
            times, number = self.kept.get(template, (0, 0))
            if times and total > times:
                found[number] = found.get(number, 0) + total - times
        return found

    def adopt(self, counts: dict[int, int], last: dict[int, tuple[int, bytes]], lines_before: int) -> None:
        """Takes over what a later piece of the same source counted."""
        for template, count in counts.items():
            self._pieces_counts[template] = self._pieces_counts.get(template, 0) + count
        for template, (number, body) in last.items():
            self._pieces_last[template] = (number + lines_before, body)

    def settle(self) -> None:
        """After all pieces were adopted and their lines fed: counts are the pieces' counts, latest copies the latest of all."""
        self.counts = self._pieces_counts
        for template, (number, body) in self._pieces_last.items():
            mine = self.last.get(template)
            if mine is None or mine[0] <= number:
                self.last[template] = (number, body)
