"""Collects what a decoder reads of a name. In: facts one by one; out: a finished `KernelName` with GPUs and sentence. Sample:

build = KernelBuilder("bmm_…_sm100f", "trtllm_gen_bmm", "batched gemm"); build.arch("sm_100f"); build.done().runs_on
-> ("sm_100", "sm_103", "sm_107")
"""

from __future__ import annotations

from forensics.knowledge.architectures import runs_on
from forensics.knowledge.gpus import sms
from forensics.model import KernelName

MAX_NAME = 20_000


class KernelBuilder:
    """A `KernelName` in the making. sentence: without the GPUs, those are added; portable: GPUs it runs on where the name says
    nothing of its binary."""

    __slots__ = ("archs", "dtypes", "extra", "family", "grammar", "name", "op", "portable", "sentence", "tile")

    def __init__(self, name: str, grammar: str, op: str) -> None:
        self.name, self.grammar, self.op = name, grammar, op
        self.dtypes: dict[str, str] = {}
        self.tile: tuple[int, ...] = ()
        self.archs: list[str] = []
        self.family: str | None = None
        self.sentence = ""
        self.extra: dict[str, object] = {}
        self.portable: tuple[str, ...] = ()

    def dtype(self, key: str, word: str | None) -> None:
        """Notes a data type where it is known."""
        if word:
            self.dtypes[key] = word

    def arch(self, target: str) -> None:
        """Notes a target its binary holds."""
        if target not in self.archs:
            self.archs.append(target)

    def done(self) -> KernelName:
        """The record. runs_on follows from the targets; without one it is what the decoder said."""
        loads = runs_on(self.archs, sms()) if self.archs else self.portable
        sentence = self.sentence or f"{self.op} kernel"
        if self.archs:
            sentence += f"; code for {', '.join(self.archs)}, which loads on {', '.join(loads) or 'no GPU known here'}"
        return KernelName(
            name=self.name,
            grammar=self.grammar,
            op=self.op,
            dtypes=self.dtypes,
            tile=self.tile,
            archs=tuple(self.archs),
            runs_on=loads,
            family=self.family,
            sentence=sentence + ".",
            extra=self.extra,
        )
