"""Lines that a container runtime wrote in parts. In: (number, text) of one source's kept lines; out: the same, each line whole. Sample:

    2026-11-29T20:15:20.1Z stderr P RuntimeError: CUDA out of mem          a part: the line goes on
    2026-11-29T20:15:20.1Z stderr F ory. Tried to allocate 2.00 GiB        its end
    -> one line, number of the first: … stderr P RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB

CRI log files (Kubernetes: containerd, CRI-O): a part holds 16 KiB at most. Parts between which a line was not kept stay apart.
"""

from __future__ import annotations

from forensics.ingest.pattern import Pattern

_CRI = Pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+\-]\d\d:?\d\d) std(?:out|err) (?P<tag>[FP])(?: |$)")
#: parts of one line
_MOST = 64


def whole_lines(kept: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines with parts put together; the same list where the source is no CRI log or has none."""
    if not kept or _CRI.match(kept[0][1]) is None:
        return kept
    out: list[tuple[int, str]] = []
    number, last, parts = 0, 0, list[str]()
    for at, text in kept:
        found = _CRI.match(text)
        if parts and (found is None or at != last + 1 or len(parts) >= _MOST):
            out.append((number, "".join(parts)))
            parts = []
        if parts and found is not None:
            parts.append(text[found.end() :])
        else:
            number, parts = at, [text]
        last = at
        if found is None or found["tag"] == "F":
            out.append((number, "".join(parts)))
            parts = []
    if parts:
        out.append((number, "".join(parts)))
    return out if len(out) < len(kept) else kept
