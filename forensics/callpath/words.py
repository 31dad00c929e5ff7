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
#: a grid is a tuple or a function: `model_parts[0](inputs)` calls one of several things
_KERNEL_LAUNCH = Pattern(r"(?<![\w.])(_?[a-z]\w*)\[(?!-?\d+\]|[\"'])[^\]]{1,80}\]\((?!\))")
#: what may stand before a call that is all of its line
_HEAD = Pattern(r"\s*(?:def [^\n]{1,200}?: ?)?(?:[\w.,* \[\]()]{1,120} [-+*/]?= ?)?(?:return |yield |await ){0,2}\(?")
#: characters of a code line that are looked at
_LONGEST = 1_000
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
    return next((label for part, label in _labels()["paths"].items() if part in path), None)


def called(frame: Frame, entered: bool = False) -> str | None:
    """The layer that a frame calls, from what the carets mark or else from its code line: an attribute of self or a class that is made
    and called at once. entered: the next frame is of a layer's call. None where the line calls several, or does more with what the
    call gives back and nothing shows that it was inside it: then nobody knows which call it was."""
    text = (frame.marked or frame.code or "")[:_LONGEST]
    made = _MADE.search(text)
    if made:
        name = str(made[1])
        return name.lower() if name.lower() in draft_words() else name
    found: dict[str, bool] = {}  # name -> whether its call is all that the line does
    for match in _CALL.finditer(text):
        name = pattern_of(r"\[[^\]]*\]").sub("", str(match[1])).rsplit(".", 1)[-1]
        if name not in _ignored() and name not in dull() and len(name) > 1:
            found[name.strip("_")] = _is_all(text, match.start(), match.end())
    if frame.marked:  # the carets are below the call that was running, its arguments stood already
        return next((name for name, whole in found.items() if whole), next(iter(found)) if entered and len(found) == 1 else None)
    return next((name for name, whole in found.items() if whole or entered), None) if len(found) == 1 else None


def _is_all(text: str, start: int, end: int) -> bool:
    """True where a call is a whole statement, or what it returns or sets; it may go on in the next line."""
    if not _HEAD.fullmatch(text, 0, start):
        return False
    depth = 1
    for place in range(end, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            rest = text[place + 1 :].strip(" ,)\n")
            return not rest or rest.startswith("#")
    return True


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
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    if stem in _labels()["calls"]["no_models"]:
        return None
    return draft_word(path) or stem.removeprefix("modeling_")
