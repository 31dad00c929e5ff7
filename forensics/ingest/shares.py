"""How much of each input is kept. In: options, the number of inputs; out: bytes and lines for one of them. Sample:

    Shares(ReadOptions(), 10_000) -> whole=419 bytes, edges=1 line, budget=65536 bytes, few=False
"""

from __future__ import annotations

from forensics.ingest.options import ReadOptions

#: of many inputs each keeps less: bytes of whole small files, lines of heads and tails, in all
_WHOLE_IN_ALL, _EDGES_IN_ALL = 4 * 1024 * 1024, 20_000
#: with more inputs than this one without a hit keeps its last line only
_FEW = 256
#: of very many inputs each has at least so many bytes for its marked lines
_LEAST_BUDGET = 64 * 1024


class Common:
    """What inputs of one process say alike. inputs: template -> how many had it; reaches: template -> what its literals ask for together
    (lines before, lines after, last literal)."""

    __slots__ = ("inputs", "reaches")

    def __init__(self) -> None:
        self.inputs: dict[int, int] = {}
        self.reaches: dict[int, tuple[int, int, bytes]] = {}


class Shares:
    """What one of so many inputs may keep: bytes kept whole, lines of its tail, bytes of its regions. common: of very many ones."""

    __slots__ = ("budget", "common", "edges", "few", "whole")

    def __init__(self, options: ReadOptions, inputs: int) -> None:
        inputs = max(inputs, 1)
        self.few = inputs <= _FEW
        self.common = None if self.few else Common()
        self.whole = options.whole_below if inputs == 1 else min(options.whole_below, _WHOLE_IN_ALL // inputs)
        self.edges = options.edge_lines if inputs == 1 else min(options.edge_lines, max(_EDGES_IN_ALL // inputs, 1))
        if not self.few:
            self.edges = min(self.edges, 1)
        self.budget = max(options.budget // inputs, min(options.budget, _LEAST_BUDGET))
