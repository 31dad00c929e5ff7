"""Which lines of a big log are kept. In: blocks of complete lines with their hits; out: kept blocks. Sample:

    retainer.feed(buffer, 0, 0, len(buffer), line=1, hits=[(34, 0)]) -> bytes done; retainer.lines() -> [(1, b"…"), (2, b"…")]

A hit keeps its window of lines. What repeats is folded before anything is decoded: a line's text without digits is its
template; of one template the first three hits are kept, one a rank, one for each different next word, and each whose
window holds a line never kept before; then only the latest, and a count. What is kept is bounded: a budget for the first,
a reserve for rare literals, a ring for the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from forensics.ingest.pattern import Pattern
from forensics.ingest.wants import Wants

_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_WHO = Pattern(rb"(?:[TPDE]P|rank[ =:_]?|Rank |RANK |pid=|default|\[\d{1,6},)(\d{1,10})")
#: copies of one template that are kept whatever they say
_COPIES = 3
#: kept of one template for different ranks or next words
_VARIANTS = 256
#: a window of so many lines after the hit is a block, whose body is compared too
_BLOCK_LINES = 8
_MOST_TEMPLATES = 50_000
#: a block that is not complete yet waits for the next bytes, up to this size
_DEFERRED = 512 * 1024
_LAST_BODIES, _LAST_LINES, _LAST_SIZE = 64, 1024, 16 * 1024
#: of the budget: for literals that were hardly kept yet, and for the end of the log
_RARE, _RARE_SHARE, _RING_SHARE, _RING_BLOCK = 32, 0.25, 0.5, 64 * 1024


class Block:
    """Consecutive lines. first: number of the first; home: head, budget, rare or ring; parts: slices that end in line feeds."""

    __slots__ = ("first", "home", "parts", "size")

    def __init__(self, first: int, home: str) -> None:
        self.first, self.home = first, home
        self.parts: list[bytes] = []
        self.size = 0


class Retainer:
    """Keeps the marked lines of one source, or of one piece of it."""

    def __init__(self, wants: Wants, budget: int, line_cap: int, head_bytes: int = 0, is_piece: bool = False) -> None:
        #: another piece follows: what reaches over this one's end is judged when they are put together
        self.is_piece = is_piece
        self._windows = wants.windows
        self._budget, self._line_cap = budget, line_cap
        self._rare_left, self._ring_left = int(budget * _RARE_SHARE), int(budget * _RING_SHARE)
        self.head_left = head_bytes
        self.blocks: list[Block] = []
        self.ring: deque[Block] = deque()
        self._open: Block | None = None
        self._end_line = 0  # the line after the last kept one
        self._owed = 0  # lines below this number are kept as they come
        self.counts: dict[int, int] = {}  # template -> hits
        self.kept: dict[int, tuple[int, int]] = {}  # template -> (times kept, line of the latest)
        self._variants: dict[int, set[int]] = {}
        self._bodies: set[int] = set()  # hashes of the lines of kept blocks
        self._kept_of = [0] * len(wants.windows)
        self.last: dict[int, tuple[int, bytes]] = {}  # template -> latest folded copy
        self.evicted = self.cut_lines = 0
        self.tail: tuple[int, bytes] | None = None
        self._whole_counts: dict[int, int] | None = None
        self._pieces_last: dict[int, tuple[int, bytes]] = {}

    def feed(
        self, buf: bytearray, low: int, base: int, cut: int, line: int, hits: list[tuple[int, int]], final: bool
    ) -> tuple[int, int]:
        """Takes buf[base:cut], complete lines of which the first is number `line`; buf[low:base] holds lines before it.

        hits: (end offset counted from base, literal index), ascending. Returns (offset up to which it is done, the number
        of the line there): short of `cut` where a block runs on behind it and `final` is False.
        """
        self._end_at = -1
        if self._open is not None and self._end_line >= line:
            self._end_at = base
            for _ in range(self._end_line - line):  # a few lines at most: taken before, but not done
                self._end_at = buf.find(b"\n", self._end_at, cut) + 1 or cut
        if self.head_left > 0:
            self._take_head(buf, base, cut, line)
        if self._owed > max(line, self._end_line):
            if self._end_at < 0:
                self._begin(line, "budget")
                self._end_line, self._end_at = line, base
            self._extend(buf, self._end_at, self._end_line, cut, self._owed)
        windows = self._windows
        rfind, find, count = buf.rfind, buf.find, buf.count
        at, number, folded_until = base, line, base
        for end, which in hits:
            position = base + end
            # inside a block that was folded; a block of its own may reach further
            if position <= folded_until and windows[which][1] < _BLOCK_LINES:
                continue
            start = rfind(b"\n", base, position) + 1 or base
            if start > at:
                number += count(b"\n", at, start)
                at = start
            stop = find(b"\n", position, cut)
            if stop < 0:
                stop = cut
            before, after = windows[which]
            text = bytes(buf[start : min(stop, start + 400)])
            template = hash((which, text.translate(None, _DIGITS)))
            seen = self.counts.get(template, 0) + 1
            if seen > 1 or len(self.counts) < _MOST_TEMPLATES:
                self.counts[template] = seen
            known = seen > _COPIES and not self._is_variant(template, text, bytes(buf[position : position + 24]))
            if known and after < _BLOCK_LINES:
                self._fold(template, number, text, _LAST_LINES)
                continue
            if after >= _BLOCK_LINES and seen > 1:
                # of its window only what no window before it covered: each line is compared once
                fresh, wanted = stop, after
                if start < folded_until:
                    fresh, wanted = folded_until - 1, after - count(b"\n", stop + 1, folded_until)
                body_end = self._walk(buf, fresh, cut, wanted)
                if body_end < 0:
                    if not final and cut - start < _DEFERRED:
                        self.counts[template] = seen - 1
                        return start, number
                    known = known and final and not self.is_piece
                    body_end = cut
                if self._is_known(bytes(buf[start if fresh == stop else fresh + 1 : body_end])) and known:
                    self._fold(template, number, bytes(buf[start:body_end]), _LAST_BODIES)
                    folded_until = max(folded_until, body_end)
                    continue
            self._keep(buf, low, cut, start, number, before, after, which, template)
        number += count(b"\n", at, cut)
        return cut, number

    def _is_variant(self, template: int, text: bytes, following: bytes) -> bool:
        """Another rank, or another next word, than any hit of this template that was kept."""
        who = _WHO.search(text, 0, 160)
        variant = hash((who[1] if who else b"", following.split(b"\n", 1)[0]))
        known = self._variants.get(template)
        if known is None and len(self._variants) < _MOST_TEMPLATES:
            known = self._variants[template] = set()
        if known is None or variant in known or len(known) >= _VARIANTS:
            return False
        known.add(variant)
        return True

    def _is_known(self, body: bytes) -> bool:
        """Every line of it was kept before, numbers and addresses aside. What was not is known from now on."""
        lines = set(map(hash, body.translate(None, _HEX).split(b"\n")))
        if self._bodies.issuperset(lines):
            return True
        if len(self._bodies) < _MOST_TEMPLATES:
            self._bodies |= lines
        return False

    def _fold(self, template: int, number: int, body: bytes, most: int) -> None:
        if len(body) <= _LAST_SIZE and (template in self.last or len(self.last) < most):
            self.last[template] = (number, body)

    @staticmethod
    def _walk(buf: bytearray, at: int, cut: int, lines: int) -> int:
        """The offset behind `lines` more line feeds after the one at or behind `at`; -1 where the block ends before."""
        find = buf.find
        for _ in range(lines + 1):
            at = find(b"\n", at, cut) + 1
            if at == 0:
                return -1
        return at

    def _keep(
        self,
        buf: bytearray,
        low: int,
        cut: int,
        start: int,
        number: int,
        before: int,
        after: int,
        which: int,
        template: int,
    ) -> None:
        """Keeps the window of one hit."""
        times, _ = self.kept.get(template, (0, 0))
        self.kept[template] = (times + 1, number)
        self._kept_of[which] += 1
        wanted, edge = number + after + 1, self._end_line
        block = self._open
        if block is not None and self._end_at >= 0 and block.first > number - before:
            edge = min(edge, block.first - before)  # the open block began with a hit that wanted less before it
        first, at = number, start
        while first > number - before and first > edge and at > low:
            at = buf.rfind(b"\n", low, at - 1) + 1 or low
            first -= 1
        if first < self._end_line and block is not None and self._end_at >= 0:
            if first < block.first:
                self._aside(first, bytes(buf[at:start]))
            first = self._end_line
        if wanted <= self._end_line:
            return
        if first > self._end_line or self._end_at < 0:
            room = (
                "budget"
                if self._budget > 0
                else "rare"
                if self._kept_of[which] <= _RARE and self._rare_left > 0
                else "ring"
            )
            self._begin(first, room)
            self._end_line, self._end_at = first, at
        self._extend(buf, self._end_at, self._end_line, cut, wanted)

    def _begin(self, first: int, home: str) -> Block:
        """Opens a block in the budget, the rare reserve or the ring."""
        self._open = block = Block(first, home)
        (self.ring if home == "ring" else self.blocks).append(block)
        return block

    def _extend(self, buf: bytearray, at: int, line: int, cut: int, wanted: int) -> None:
        """Adds lines from offset `at` (line number `line`) until line `wanted` is reached, or owes them."""
        find = buf.find
        stop = at
        while line < wanted:
            step = find(b"\n", stop, cut) + 1
            if step == 0:
                if stop < cut:  # the source's last line, without a line feed
                    stop, line = cut, line + 1
                break
            stop, line = step, line + 1
        if stop > at:
            self._add(bytes(buf[at:stop]), self._end_line)
        self._end_line, self._end_at, self._owed = line, stop, max(wanted, self._owed)

    def _add(self, data: bytes, line: int) -> None:
        """Adds lines to the open block, the first of which is number `line`."""
        if len(data) > self._line_cap:
            data = b"\n".join(self._cut(text) for text in data.split(b"\n"))
        block = self._open if self._open is not None else self._begin(line, "ring")
        room = {"head": 1, "budget": self._budget, "rare": self._rare_left, "ring": _RING_BLOCK - block.size}
        left = room[block.home]
        if left <= 0:  # the block goes on, but what comes now counts as the end of the log
            block = self._begin(line, "ring")
        block.parts.append(data)
        size = len(data)
        block.size += size
        if block.home == "budget":
            self._budget -= size
        elif block.home == "rare":
            self._rare_left -= size
        elif block.home == "ring":
            self._ring_left -= size
            while self._ring_left < 0 and len(self.ring) > 1:
                self._ring_left += self.ring.popleft().size
                self.evicted += 1

    def _cut(self, line: bytes) -> bytes:
        cap = self._line_cap
        if len(line) <= cap:
            return line
        self.cut_lines += 1
        return line[: cap // 2] + b" [... %d bytes not kept ...] " % (len(line) - cap) + line[-(cap // 2) :]

    def _take_head(self, buf: bytearray, base: int, cut: int, line: int) -> None:
        """The source's first bytes are kept whatever they say."""
        stop = cut if cut - base <= self.head_left else buf.find(b"\n", base + self.head_left, cut) + 1 or cut
        self.head_left -= stop - base
        if self._end_at < 0:
            self._begin(line, "head")
        self._add(bytes(buf[base:stop]), line)
        self._end_line = line + buf.count(b"\n", base, stop) + (stop == cut and buf[stop - 1] != 10)
        self._end_at = stop

    def _aside(self, first: int, data: bytes) -> None:
        """Keeps lines that stand before the open block."""
        block = Block(first, "budget")
        block.parts.append(data)
        self.blocks.append(block)
        self._budget -= len(data)

    def keep_lines(self, first: int, data: bytes) -> None:
        """Keeps lines from elsewhere (a long line); they may overlap what is kept."""
        self.blocks.append(self._loose(first, data))
        self._open, self._end_at = None, -1

    def keep_tail(self, first: int, data: bytes) -> None:
        """Keeps the last lines; they may overlap what is kept."""
        self.tail = (first, b"".join(self._loose(first, data).parts))

    def _loose(self, first: int, data: bytes) -> Block:
        block = Block(first, "head")
        block.parts.append(data if len(data) <= self._line_cap else b"\n".join(self._cut(x) for x in data.split(b"\n")))
        return block

    def owe(self, lines: int) -> None:
        """Keeps the next so many lines, whatever they say."""
        self._owed = max(self._owed, self._end_line + 1, 1) + lines

    def dump(self) -> dict[str, object]:
        """Everything as plain values, for another process."""
        spans = [(block.first, b"".join(block.parts)) for block in (*self.blocks, *self.ring)]
        return {
            "spans": spans,
            "counts": self.counts,
            "last": self.last,
            "evicted": self.evicted,
            "cut": self.cut_lines,
        }

    def adopt(self, piece: dict[str, Any], lines_before: int) -> None:
        """Takes over what a later piece counted; its spans are fed by the caller, then `settle` is called."""
        if self._whole_counts is None:
            self._whole_counts = {}
        for template, count in piece["counts"].items():
            self._whole_counts[template] = self._whole_counts.get(template, 0) + count
        for template, (number, body) in piece["last"].items():
            self._pieces_last[template] = (number + lines_before, body)
        self.evicted += piece["evicted"]
        self.cut_lines += piece["cut"]

    def settle(self) -> None:
        """After all pieces were adopted and fed: counts are those of the pieces, latest copies the latest of all."""
        if self._whole_counts is not None:
            self.counts = self._whole_counts
        for template, (number, body) in self._pieces_last.items():
            mine = self.last.get(template)
            if mine is None or mine[0] < number:
                self.last[template] = (number, body)

    def repeats(self) -> dict[int, int]:
        """Line number of the latest kept copy -> hits of its template that were not kept."""
        found: dict[int, int] = {}
        for template, total in self.counts.items():
            times, number = self.kept.get(template, (0, 0))
            if times and total > times:
                found[number] = found.get(number, 0) + total - times
        return found

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number, bytes without the line feed) of every kept line, ascending, each once."""
        spans = [(block.first, b"".join(block.parts)) for block in (*self.blocks, *self.ring)]
        spans.extend(self.last.values())
        if self.tail is not None:
            spans.append(self.tail)
        spans.sort(key=lambda span: span[0])
        done = 0
        for first, data in spans:
            texts = data.split(b"\n")
            if not texts[-1]:
                texts.pop()
            for number, text in enumerate(texts, first):
                if number > done:
                    yield number, text
                    done = number
