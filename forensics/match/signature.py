"""A signature as it is loaded: what the matcher needs at once, the words for people only when asked for. In: a row of the compiled
index; out: `Signature`. Sample (the TOML it comes from is described in docs/add-a-signature.md):

    Signature(id="flashinfer.trtllm-gemm-cubin-wrong-gpu", role="root", category="arch_mismatch", domain="flashinfer",
              confidence="established", specificity=95, status="stable", literals=("Error occurred when running GEMM!",), …)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from forensics.ingest.compiled import pattern_of


class Signature(NamedTuple):
    """One known failure. literals: all must stand in the text; any_literals: one of them must; word: a whole word of every text
    that can match, "" where none is sure (a cheap first test); rest: the other keys of [match]; trusted: shipped with the
    package (a user's own patterns run under a time limit); source: the TOML file; key: its family's compiled details."""

    id: str
    role: str
    category: str | None
    domain: str
    confidence: str
    specificity: int
    status: str
    literals: tuple[str, ...]
    any_literals: tuple[str, ...]
    word: str
    rest: Mapping[str, Any]
    trusted: bool
    source: str
    key: str
    load_details: Callable[[str], Mapping[str, Any]]

    @property
    def details(self) -> Mapping[str, Any]:
        """Everything in words: title, why, next_steps, must_not_prove, references, fixes."""
        found: Mapping[str, Any] = self.load_details(self.key)[self.id]
        return found

    @property
    def title(self) -> str:
        """One line, with {names} still to be filled."""
        return str(self.details.get("title", self.id))

    @property
    def why(self) -> str:
        """The explanation, with {names} still to be filled."""
        return str(self.details.get("why", ""))

    @property
    def fixes(self) -> Sequence[Mapping[str, Any]]:
        """The [[fixes]] tables."""
        found: Sequence[Mapping[str, Any]] = self.details.get("fixes", ())
        return found

    @property
    def pattern(self) -> str:
        """The regular expression tried on candidates, or ""."""
        return str(self.rest.get("pattern", ""))

    @property
    def needs_event(self) -> bool:
        """True where only a parsed event can match, never a lone line."""
        return bool(self.rest.get("frame") or self.rest.get("code") or self.rest.get("events"))

    @property
    def anchor_literals(self) -> tuple[str, ...]:
        """What the scan looks for: one literal that must be there, or all of those of which one must; and what must be near. A stack
        is kept whatever a signature asks of its frames."""
        found = () if self.rest.get("frame") or self.rest.get("code") else anchors_of(self.literals, self.any_literals)
        return (*found, *self.rest.get("nearby", ()))


@lru_cache(maxsize=8192)
def anchors_of(literals: tuple[str, ...], any_literals: tuple[str, ...]) -> tuple[str, ...]:
    """The longest of the required literals; without one of 8 bytes, all the alternatives."""
    longest = max(literals, key=lambda text: len(text.encode()), default="")
    if len(longest.encode()) >= 8 or not any_literals:
        return (longest,) if longest else ()
    return any_literals


@lru_cache(maxsize=4096)
def searcher(pattern: str, trusted: bool) -> Callable[[str], Any]:
    """text -> match object or None for a pattern. A user's own gets 0.1 s a text: one that needs longer raises TimeoutError."""
    if trusted:

        return pattern_of(pattern).search
    import regex

    compiled = regex.compile(pattern)

    def search(text: str) -> Any:
        try:
            return compiled.search(text, timeout=0.1)
        except TimeoutError:
            raise TimeoutError(f"its pattern took more than 0.1 s of time on one text: {pattern[:80]}") from None

    return search
