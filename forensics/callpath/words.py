"""Names into words. In: a function, a code line, a path; out: what a person calls it. Sample:

trtllm_fp4_block_scale_routed_moe -> "trtllm routed MoE"     hidden = self.mlp(x) -> "mlp"     NextN()(x) -> "nextn"
"""

from __future__ import annotations

from functools import lru_cache

from forensics.callpath.stages import draft_word, draft_words
from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.pattern import Pattern
from forensics.model.stack import Frame

_CALL = Pattern(r"\bself\.((?:[A-Za-z_]\w*(?:\[[^\]\[]{0,40}\])?\.){0,4}[A-Za-z_]\w*)(?:\[[^\]\[]{0,40}\])?\(")
_MADE = Pattern(r"\b([A-Z]\w*)\([^()]{0,80}\)\(")
_KERNEL_LAUNCH = Pattern(r"(?<![\w.])(_?[a-z]\w*)\[[^\]]{1,80}\]\((?!\))")
_DTYPE = Pattern(
    r"^(?:fp\d+|bf16|f16|f32|int\d+|e\dm\d|nvfp4|mxfp\d|mxe\dm\d|block|scale|w\d+a\d+|sm\d+|v\d+|get|run|gen)$"
)


@lru_cache(maxsize=1)
def _labels() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = table("frames/labels")
    return found


@lru_cache(maxsize=1)
def _ignored() -> frozenset[str]:
    return frozenset(table("frames/labels")["calls"]["ignore"])


@lru_cache(maxsize=1)
def dull() -> frozenset[str]:
    """Functions whose names say nothing of what they do."""
    return frozenset(table("frames/labels")["calls"]["dull"])


@lru_cache(maxsize=4096)
def function_words(function: str) -> str:
    """A kernel library's function in words; its own name where fewer than two words are known."""
    name = function.rsplit(".", 1)[-1]
    exact = _labels()["names"].get(name)
    if exact:
        return exact
    words = _labels()["words"]
    kept: list[str] = []
    for part in pattern_of(r"_+").split(name.strip("_").lower()):
        if part in words:
            kept.append(words[part])
        elif not _DTYPE.match(part):
            return name
    return " ".join(dict.fromkeys(kept)) if len(kept) > 1 else name


def path_label(path: str) -> str | None:
    """The step that a part of a library is by itself ("flashinfer JIT build"), or None."""
    path = path.replace("\\", "/")
    return next((label for part, label in _labels()["paths"].items() if part in path), None)


def called(frame: Frame) -> str | None:
    """The layer that a frame calls, from its code line: an attribute of self or a class that is made and called at once."""
    for text in (frame.marked, frame.code):
        if not text:
            continue
        made = _MADE.search(text)
        if made:
            name = str(made[1])
            return name.lower() if name.lower() in draft_words() else name
        for match in _CALL.finditer(text):
            name = pattern_of(r"\[[^\]]*\]").sub("", str(match[1])).rsplit(".", 1)[-1]
            if name not in _ignored() and name not in dull() and len(name) > 1:
                return name.strip("_")
    return None


def launched(frame: Frame) -> str | None:
    """The Triton kernel that a frame launches (`_fwd_kernel[grid](…)`), or None."""
    for text in (frame.marked, frame.code):
        match = _KERNEL_LAUNCH.search(text or "")
        if match:
            return str(match[1])
    return None


def model_label(path: str) -> str | None:
    """A model file as people call it: "nextn" for deepseek_v4_nextn.py, "llama" for modeling_llama.py; None for the
    files beside the models (utils.py)."""
    stem = path.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    if stem in _labels()["calls"]["no_models"]:
        return None
    return draft_word(path) or stem.removeprefix("modeling_")
