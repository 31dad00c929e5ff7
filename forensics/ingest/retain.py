"""Which lines of a big log are kept. In: blocks of complete lines with their hits; out: kept lines. Sample:

retainer.feed(buffer, 0, 0, len(buffer), line=1, hits=[(34, 0)], final=True); list(retainer.lines()) -> [(1, b"…"), (2, b"…")]

A hit keeps its window of lines; repetition is folded (`fold.py`) before anything is decoded. What is kept is bounded: a budget
for the first, a reserve for literals that are rare, a ring for the end of the log.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

from forensics.ingest.feeds import line_feeds
from forensics.ingest.fold import COMPARED, COPIES, DIGITS, MOST_TEMPLATES, Fold
from forensics.ingest.hits import LONG, SHALLOW, SHORT, following, is_quoted
from forensics.ingest.places import Place, behind_lines
from forensics.ingest.shares import Common
from forensics.ingest.wants import BLOCK_LINES, Wants

#: of a template seen so often every sixteenth copy is looked at
_FLOOD, _FLOOD_MASK = 1024, 15
#: bytes that are compared at once, more and more where all was known: in a crash loop each frame is a hit
_AHEAD = (2 * 1024, 128 * 1024)
#: bytes before the end of what is known, in which a frame is still looked at: its stack may go on behind
_SAFE = 8 * 1024
#: so many copies of a template keep all of their window; of later ones that stand alone what stands around tells nothing new
_WIDE, _NARROW = 4, (1, 2)
#: heads of blocks that stand so many lines below each other belong to as many writers whose lines are woven: what follows is kept whole, so
#: many lines for each of them, up to so many of them (more are no stacks, but what each line says), and of so many such crashes
_NEXT_HEAD, _WOVEN_LINES, _WRITERS, _CRASHES = 3, 100, 64, 2
#: a block that is not complete yet waits for the next bytes, up to this size
_DEFERRED = 512 * 1024
#: inputs that say the same: so many keep what stands around it, and as many copies as of a template of their own
_ALIKE = 8
#: of the budget: for literals that were hardly kept yet, and for the end of the log
_RARE, _RARE_SHARE, _RING_SHARE, _RING_BLOCK = 32, 0.25, 0.5, 64 * 1024


class Block:
    """Consecutive lines. first: number of the first; home: budget, rare, ring, or loose; parts: slices that end in line feeds."""

    __slots__ = ("first", "home", "parts", "size")

    def __init__(self, first: int, home: str) -> None:
        self.first, self.home = first, home
        self.parts: list[bytes] = []
        self.size = 0


class Retainer:
    """Keeps the marked lines of one source, or of one piece of it (is_piece: another one follows, and what reaches over this
    one's end is judged when they are put together). common: of very many inputs what they say alike, shared by all of them;
    alike: numbers of the kept lines that many of them had."""

    def __init__(
        self, wants: Wants, budget: int, line_cap: int, is_piece: bool = False, common: Common | None = None
    ) -> None:
        self._wants = wants
        self._budget, self._line_cap, self._is_piece, self._common = budget, line_cap, is_piece, common
        self._rare_left, self._ring_left = int(budget * _RARE_SHARE), int(budget * _RING_SHARE)
        self.fold = Fold()
        self.tail: tuple[int, bytes] | None = None
        self.alike: set[int] = set()
        self.evicted = self.cut_lines = 0
        self._blocks: list[Block] = []
        self._ring: deque[Block] = deque()
        self._open: Block | None = None
        self._end_line = 0  # the line after the last one kept
        self._end_at = -1  # its offset in the buffer, -1 where it is not there
        self._owed = 0  # lines below this number are kept as they come
        self._crashes_left = _CRASHES
        self._kept_of: Counter[bytes] = Counter()
        self._flooded: set[int] = set()  # single lines seen so often that few copies are looked at
        self._quoted: dict[int, int] = {}  # literal -> its template amid a long text
        self._reach: dict[int, tuple[int, int, bytes]] = {}  # template -> what its literals ask for together

    def feed(
        self, buf: bytearray, low: int, base: int, cut: int, line: int, hits: list[tuple[int, int]], final: bool
    ) -> tuple[int, int]:
        """Takes buf[base:cut], complete lines of which the first is number `line`; buf[low:base] holds lines before it.

        hits: (end offset counted from base, literal index), ascending. Returns (offset up to which it is done, the number of the
        line there): short of `cut` where a block runs on behind it and `final` is False.
        """
        self._resume(buf, base, cut, line)
        sought, quoted, reaches, fold, common = self._wants.heads, self._quoted, self._reach, self.fold, self._common
        is_frame, counts, flooded = sought.is_frame, fold.counts, self._flooded
        ahead = _AHEAD[0]
        rfind, find = buf.rfind, buf.find
        place = Place(buf, base, line)
        known_until, known_line = base, line  # what lies before it was compared, and is known
        worn_from = worn_until = base  # between them each frame was seen often
        dropped: dict[int, tuple[int, int, int]] = {}
        heads, head_end = 0, base
        stop = base - 1
        for index, (end, which) in enumerate(hits):
            position = base + end
            if position <= stop or (is_frame[which] and worn_from <= position < worn_until - _SAFE):
                continue  # one more literal in the same line, or a frame of a stack that was seen often
            start = rfind(b"\n", stop if stop > base else base, position) + 1 or base
            stop = find(b"\n", position, cut)
            if stop < 0:
                stop = cut
            size = stop - start
            times = counts.get(quoted.get(which, 0), 0) if size > SHORT and position - start > SHALLOW else -1
            if times >= 0 and is_quoted(sought, buf, base, start, stop, hits, index):
                if times >= COPIES:
                    counts[quoted[which]] = times + 1
                    continue
                text = b"quoted: " + sought.heads[which]  # amid a long text (a request, a dump)
                template = quoted[which] = hash(text)
                seen = counts.get(template, 0) + 1
            else:
                text = bytes(buf[start:stop] if size < COMPARED else buf[start : start + COMPARED])
                template = hash(text.translate(None, DIGITS))
                seen = counts.get(template, 0) + 1
            if seen > 1 or len(counts) < MOST_TEMPLATES:
                counts[template] = seen
                if seen & _FLOOD_MASK and template in flooded:
                    continue
            reach = reaches.get(template)
            if reach is None:
                reach = common.reaches.get(template) if common is not None else None
                reach = reach or self._reach_of(hits, index, buf, base, start, stop, text)
                if common is not None:
                    reach = self._among_many(common, template, reach)
                if len(reaches) < MOST_TEMPLATES:
                    reaches[template] = reach
            before, after, last = reach
            if after >= BLOCK_LINES and seen <= COPIES + 1 and b'", line ' in text:
                fold.age(bytes(buf[start:stop]), seen)
            if after >= BLOCK_LINES and sought.is_block[which]:
                near = heads and start - head_end < COMPARED * _NEXT_HEAD and buf.count(b"\n", head_end, start) <= _NEXT_HEAD
                heads, head_end = heads + 1 if near else 1, stop
                if heads == COPIES:
                    self._crashes_left -= 1
                if COPIES <= heads <= _WRITERS and self._crashes_left >= 0:
                    number = place.of(start)
                    fold.keep(template, number)
                    self._kept_of[last] += 1
                    self._keep(buf, low, cut, start, number, before, heads * _WOVEN_LINES, self._kept_of[last])
                    continue
            if seen > _FLOOD and after < BLOCK_LINES:
                flooded.add(template)
            copies = COPIES if common is None or after >= BLOCK_LINES or common.inputs.get(template, 0) <= _ALIKE else 1
            is_known = seen > copies and (
                (seen > _FLOOD and seen & _FLOOD_MASK != 0)
                or not fold.is_new(template, text, following(sought, buf, position, which))
            )
            if after < BLOCK_LINES:
                if is_known:
                    dropped[template] = (start, stop, -1)
                    continue
            elif seen > 1:
                # of its window only what no window before it covered: each line is compared once
                number = place.of(start)
                fresh, wanted = stop, after
                if start < known_until:
                    fresh, wanted = known_until - 1, number + after + 1 - known_line
                    if is_known and wanted <= 0:
                        dropped[template] = (start, stop, after)
                        continue
                body_at = start if fresh == stop else fresh + 1
                if is_known:
                    body_end = buf.rfind(b"\n", fresh + 1, min(fresh + ahead, cut)) + 1
                    lines = line_feeds(buf, fresh + 1, body_end) if body_end else 0
                    known, worn = fold.compare(bytes(buf[body_at:body_end])) if lines >= wanted else (False, False)
                    if known:
                        dropped[template] = (start, stop, after)
                        known_line = (number + 1 if fresh == stop else known_line) + lines
                        known_until, ahead = body_end, min(ahead * 2, _AHEAD[1])
                        if worn:
                            worn_from, worn_until = worn_from if worn_until == body_at else body_at, body_end
                        continue
                    ahead = _AHEAD[0]
                body_end = behind_lines(buf, fresh, cut, wanted)
                if body_end < 0:
                    if not final and cut - start < _DEFERRED:
                        counts[template] = seen - 1
                        self._drop(buf, cut, dropped, place)
                        return start, number
                    is_known = is_known and not self._is_piece
                    body_end = cut
                body = bytes(buf[body_at:body_end])
                if is_known and fold.compare(body)[0]:
                    dropped[template] = (start, stop, after)
                    if body_end > known_until:
                        known_until, known_line = body_end, number + after + 1
                    continue
                fold.learn(body)
            number = place.of(start)
            if seen > _WIDE and after < BLOCK_LINES and number - before > self._end_line:
                before, after = min(before, _NARROW[0]), min(after, _NARROW[1])
            if copies == 1:
                self.alike.add(number)
            fold.keep(template, number)
            self._kept_of[last] += 1
            self._keep(buf, low, cut, start, number, before, after, self._kept_of[last])
        self._drop(buf, cut, dropped, place)
        return cut, place.of(cut)

    def _reach_of(
        self, hits: list[tuple[int, int]], index: int, buf: bytearray, base: int, start: int, stop: int, text: bytes
    ) -> tuple[int, int, bytes]:
        """(lines before, lines after, last literal) that the hits of the line buf[start:stop] ask for together; `index` is its first."""
        known = self._wants.heads.literals
        before = after = behind = 0
        last = b""
        while index < len(hits) and base + hits[index][0] <= stop:
            end, which = hits[index]
            index += 1
            behind = stop - base - end
            literals = known[which]
            if len(literals) > 1:  # of those that share what was found the ones that stand there, else any
                literals = [one for one in literals if buf.find(one[0], start, stop) >= 0] or literals
            for literal, lines_before, lines_after in literals:
                before, after, last = max(before, lines_before), max(after, lines_after), literal
        if text.startswith(b"quoted: ") or (behind > LONG and after >= BLOCK_LINES):
            return 0, 0, last  # the line holds it all
        return before, after, last

    @staticmethod
    def _among_many(common: Common, template: int, reach: tuple[int, int, bytes]) -> tuple[int, int, bytes]:
        """Of what very many inputs say alike the first have their surroundings, then some a little of them; later ones keep the line
        itself: it tells their rank."""
        inputs = common.inputs[template] = common.inputs.get(template, 0) + 1
        if len(common.reaches) < MOST_TEMPLATES:
            common.reaches[template] = reach
        before, after, last = reach
        if inputs <= _WIDE or after >= BLOCK_LINES:
            return before, after, last
        return (min(before, _NARROW[0]), min(after, _NARROW[1]), last) if inputs <= _ALIKE else (0, 0, last)

    def _drop(self, buf: bytearray, cut: int, dropped: dict[int, tuple[int, int, int]], place: Place) -> None:
        """Hands on the latest copies that were not kept: (offset, end of the line, lines after it or -1)."""
        for template, (start, stop, after) in sorted(dropped.items(), key=lambda item: item[1]):
            number = place.of(start)
            if after < 0:
                self.fold.drop(template, number, bytes(buf[start : min(stop, start + COMPARED)]), False)
            else:
                end = behind_lines(buf, stop, cut, after)
                self.fold.drop(template, number, bytes(buf[start : end if end >= 0 else cut]), True)

    def _resume(self, buf: bytearray, base: int, cut: int, line: int) -> None:
        """Finds the end of what is kept in the new block, and adds what is owed from the one before."""
        self._end_at = -1
        if self._open is not None and self._end_line >= line:
            self._end_at = base
            for _ in range(self._end_line - line):  # a few lines at most: taken before, but not done
                self._end_at = buf.find(b"\n", self._end_at, cut) + 1 or cut
        if self._owed > max(line, self._end_line):
            if self._end_at < 0:
                self._begin(line, "budget")
                self._end_line, self._end_at = line, base
            self._extend(buf, self._end_at, self._end_line, cut, self._owed)

    def _keep(
        self, buf: bytearray, low: int, cut: int, start: int, number: int, before: int, after: int, times: int
    ) -> None:
        """Keeps the window of one hit. times: how often its literal was kept."""
        wanted, edge = number + after + 1, self._end_line
        block = self._open
        if block is not None and self._end_at >= 0 and block.first > number - before:
            edge = min(edge, block.first - before)  # the open block began with a hit that wanted less before it
        first, at = number, start
        while first > number - before and first > edge and at > low:
            at = buf.rfind(b"\n", low, at - 1) + 1 or low
            first -= 1
        is_rare = times <= _RARE and self._rare_left > 0
        if is_rare and block is not None and block.home == "ring" and first <= self._end_line:
            # amid a flood: what is rare must not go with the ring
            end = behind_lines(buf, start, cut, after)
            self._loose(first, bytes(buf[at : end if end >= 0 else cut]), "rare")
        if first < self._end_line and block is not None and self._end_at >= 0:
            if first < block.first:
                self._loose(first, bytes(buf[at:start]))
            first = self._end_line
        if wanted <= self._end_line:
            return
        if first > self._end_line or self._end_at < 0:
            self._begin(first, "budget" if self._budget > 0 else "rare" if is_rare else "ring")
            self._end_line, self._end_at = first, at
        self._extend(buf, self._end_at, self._end_line, cut, wanted)

    def _begin(self, first: int, home: str) -> Block:
        """Opens a block in the budget, the rare reserve or the ring."""
        self._open = block = Block(first, home)
        (self._ring if home == "ring" else self._blocks).append(block)
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
        block = self._open if self._open is not None else self._begin(line, "ring")
        room = {"loose": 1, "budget": self._budget, "rare": self._rare_left, "ring": _RING_BLOCK - block.size}
        if room[block.home] <= 0:  # the block goes on, but what comes now counts as the end of the log
            block = self._begin(line, "ring")
        data = self._capped(data)
        size = len(data)
        block.parts.append(data)
        block.size += size
        if block.home == "budget":
            self._budget -= size
        elif block.home == "rare":
            self._rare_left -= size
        elif block.home == "ring":
            self._ring_left -= size
            while self._ring_left < 0 and len(self._ring) > 1:
                self._ring_left += self._ring.popleft().size
                self.evicted += 1

    def _capped(self, data: bytes) -> bytes:
        """Long lines cut in their middle."""
        cap = self._line_cap
        if len(data) <= cap:
            return data
        lines = data.split(b"\n")
        for index, line in enumerate(lines):
            if len(line) > cap:
                note = b" [... %d bytes not kept ...] " % (len(line) - cap)
                lines[index] = line[: cap // 2] + note + line[-(cap // 2) :]
                self.cut_lines += 1
        return b"\n".join(lines)

    def _loose(self, first: int, data: bytes, home: str = "budget") -> None:
        """Keeps lines that overlap what is kept, or stand before it."""
        block = Block(first, "loose")
        block.parts.append(self._capped(data))
        self._blocks.append(block)
        if home == "rare":
            self._rare_left -= len(data)
        else:
            self._budget -= len(data)

    def keep_lines(self, first: int, data: bytes) -> None:
        """Keeps lines from elsewhere (a line that did not fit into the buffer)."""
        self._loose(first, data)
        self._open, self._end_at = None, -1

    def keep_tail(self, first: int, data: bytes) -> None:
        """Keeps the last lines, in place of those that were the last before."""
        self.tail = (first, self._capped(data))

    def owe(self, lines: int) -> None:
        """Keeps the next so many lines, whatever they say."""
        self._owed = max(self._end_line, 1) + lines

    def dump(self) -> dict[str, Any]:
        """Everything but the tail as plain values, for another process."""
        spans = [(block.first, b"".join(block.parts)) for block in (*self._blocks, *self._ring)]
        fold = self.fold
        return {
            "spans": spans, "counts": fold.counts, "last": fold.last, "evicted": self.evicted, "cut": self.cut_lines,
        }  # fmt: skip

    def adopt(self, piece: dict[str, Any], lines_before: int) -> None:
        """Takes over what a later piece counted; the caller feeds its spans, then calls `fold.settle`."""
        self.fold.adopt(piece["counts"], piece["last"], lines_before)
        self.evicted += piece["evicted"]
        self.cut_lines += piece["cut"]

    def repeats(self, kept: Iterable[tuple[int, bytes]]) -> dict[int, int]:
        """As `Fold.repeats`."""
        return self.fold.repeats(kept, self._quoted.values())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number, bytes without the line feed) of every kept line, ascending, each once."""
        spans = [(block.first, b"".join(block.parts)) for block in (*self._blocks, *self._ring)]
        spans.extend(self.fold.last.values())
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
