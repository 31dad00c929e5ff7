"""A pasted GitHub issue: each fenced block is a log, the prose around is not. In: lines of a source; out: blocks. Sample:

### Describe the bug            -> [[(3, "[rank0]: Traceback (most recent call last):"), …]]
```                                (the numbers stay those of the file)
[rank0]: Traceback (most recent call last):
```
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern

_FENCE = Pattern(r" {0,8}(?:> ?){0,3} {0,8}(`{3,10}|~{3,10}) {0,4}([\w+.#-]{0,30})[^`]{0,200}$")
_HEADING = Pattern(r"(?:#{1,6} \S|\*\*[^*]{2,80}\*\*|- \[[ xX]\] |<details|<summary|</details|!\[|<!-- )")
_TRACE = ("Traceback (most recent call last):", '  File "', "CUDA error", "RuntimeError:", "ncclSystemError")
#: what stands in a report that a program itself writes in Markdown (parse/python/reports.py)
_REPORT = "**Exception Type:** "
_MOST_LINES = 20_000


def fenced(name: str, lines: list[tuple[int, str]]) -> list[list[tuple[int, str]]] | None:
    """The fenced blocks with their file's line numbers, or None where the source is no Markdown with logs in fences."""
    if len(lines) > _MOST_LINES or not any("```" in text or "~~~" in text for _, text in lines):
        return None
    is_named = name.lower().endswith((".md", ".markdown"))
    blocks: list[list[tuple[int, str]]] = []
    prose: list[str] = []
    block: list[tuple[int, str]] | None = None
    mark, indent = "", 0
    for number, text in lines:
        bare = text.rstrip("\r")
        found = _FENCE.match(bare)
        if block is None:
            if found:
                block, mark, indent = [], found[1], len(bare) - len(bare.lstrip(" "))
            else:
                prose.append(bare)
        elif found and not found[2] and found[1][0] == mark[0] and len(found[1]) >= len(mark):
            blocks.append(block)
            block = None
        else:
            cut = len(text) - len(text.lstrip(" "))
            block.append((number, text[min(indent, cut) :]))
    if block:
        blocks.append(block)
    blocks = [b for b in blocks if any(text.strip() for _, text in b)]
    if not blocks or not (is_named or any(_HEADING.match(line) for line in prose)):
        return None
    # a stack outside of the fences: whoever pasted it did not fence it, or a program wrote the fences; the whole text is the log
    if any(word in line for line in prose for word in (*_TRACE[:2], _REPORT)):
        return None
    has_trace = any(word in text for b in blocks for _, text in b for word in _TRACE)
    if not is_named and not has_trace and sum(map(len, blocks)) < len(prose):
        return None
    return blocks
