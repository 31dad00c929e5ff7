"""What repeats is counted, not kept. In: marked lines and their windows as bytes; out: known or new. Sample:

fold.is_new(template, b"[2026-11-29 20:15:20 TP1] CUDA error: an illegal", b": an illegal") -> True, then False; for TP2 True

A line without its digits is its template. Of one template the first hits are kept, some for each rank, one for each different
next word, and each whose window holds a line never kept before. Of the others only the latest, and a count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from forensics.ingest.pattern import Pattern

DIGITS = b"0123456789"
#: of a marked line its first bytes are compared
COMPARED = 240
_HEX = b"0123456789abcdefABCDEF"
#: the number of a rank, as prefixes name it
WHO = Pattern(rb"(?:[TPDE]P|rank[ =:_]?|Rank |RANK |pid=|default|\[\d{1,6},)(\d{1,10})")
#: srun's label: under it a local rank is another one for each task
_TASK = Pattern(rb" {0,5}(\d{1,6}: )")
#: copies of one template that are kept whatever they say: two crashes of eight ranks, woven and without a prefix
COPIES = 16
#: kept of one template for different ranks, and for different next words (a device, an error code)
_RANKS, _WORDS = 1024, 4
MOST_TEMPLATES = 50_000
#: latest copies: so many blocks, so many single lines, none bigger than this
_LAST_BODIES, _LAST_LINES, _LAST_SIZE = 64, 1024, 16 * 1024


class Fold:
    """counts: template -> hits; kept: template -> (times kept, line of the latest); last: template -> latest copy not kept."""

    __slots__ = ("_bodies", "_pieces_counts", "_pieces_last", "_variants", "_young", "counts", "kept", "last")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.kept: dict[int, tuple[int, int]] = {}
        self.last: dict[int, tuple[int, bytes]] = {}
        self._variants: dict[int, tuple[set[bytes], set[bytes]]] = {}
        self._bodies: set[int] = set()  # hashes of the lines of kept blocks
        self._young: set[int] = set()  # of frames that were seen a few times
        self._pieces_counts: dict[int, int] = {}
        self._pieces_last: dict[int, tuple[int, bytes]] = {}

    def is_new(self, template: int, text: bytes, following: bytes) -> bool:
        """Another rank or next word than any copy that was asked about. following: bytes behind the literal."""
        if b'  File "' in text:
            return False  # the frames of a rank come with its stack
        known = self._variants.get(template)
        if known is None:
            if len(self._variants) >= MOST_TEMPLATES:
                return False
            known = self._variants[template] = (set(), set())
        ranks, words = known
        is_new = False
        who = WHO.search(text, 0, 80)
        if who is not None and len(ranks) < _RANKS:
            task = _TASK.match(text)
            name = task[1] + who[1] if task is not None else who[1]
            if name not in ranks:
                ranks.add(name)
                is_new = True
        if len(words) < _WORDS:
            word = following.partition(b"\n")[0]
            if word not in words:
                words.add(word)
                is_new = True
        return is_new

    def compare(self, body: bytes) -> tuple[bool, bool]:
        """Whether every line of it was kept before, numbers and addresses aside; whether, too, each frame in it was seen often."""
        lines = [*map(hash, body.translate(None, _HEX).split(b"\n"))]
        known = self._bodies.issuperset(lines)
        return known, known and self._young.isdisjoint(lines)

    def age(self, frame: bytes, times: int) -> None:
        """A stack's frame, a whole line, was seen for the time `times`: of the first copies none may be passed over, stacks whose lines
        are woven differ in nothing but their order."""
        if times > COPIES:
            self._young.discard(hash(frame.translate(None, _HEX)))
        elif len(self._young) < MOST_TEMPLATES:
            self._young.add(hash(frame.translate(None, _HEX)))

    def learn(self, body: bytes) -> None:
        """These lines are kept."""
        if len(self._bodies) < MOST_TEMPLATES:
            self._bodies.update(map(hash, body.translate(None, _HEX).split(b"\n")))

    def keep(self, template: int, number: int) -> None:
        """A copy on line `number` was kept."""
        self.kept[template] = (self.kept.get(template, (0, 0))[0] + 1, number)

    def drop(self, template: int, number: int, text: bytes, is_block: bool) -> None:
        """A copy was not kept."""
        last = self.last
        if template in last or len(last) < (_LAST_BODIES if is_block else _LAST_LINES):
            if len(text) <= _LAST_SIZE:
                last[template] = (number, text)

    def repeats(self, kept: Iterable[tuple[int, bytes]], quoted: Collection[int] = ()) -> dict[int, int]:
        """Line number of the latest kept copy -> hits of its template that are not among the kept lines (number, bytes). quoted:
        templates that are not their line's own."""
        missing = {template: total for template, total in self.counts.items() if total > self.kept.get(template, (0, 0))[0] > 0}
        latest = {template: self.kept[template][1] for template in missing}
        for template in quoted:
            if template in missing:
                missing[template] -= self.kept[template][0]
        if missing:
            for number, text in kept:
                template = hash(text[:COMPARED].translate(None, DIGITS))
                if template in missing:
                    missing[template] -= 1
                    latest[template] = max(latest[template], number)
        found: dict[int, int] = {}
        for template, count in missing.items():
            if count > 0:
                found[latest[template]] = found.get(latest[template], 0) + count
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
