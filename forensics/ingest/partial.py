"""Lines that reached the log in parts. In: (number, text) of one source's kept lines; out: the same, each line whole. Samples:

    2026-11-29T20:15:20.1Z stderr P RuntimeError: CUDA out of mem          a part: the line goes on
    2026-11-29T20:15:20.1Z stderr F ory. Tried to allocate 2.00 GiB        its end
    -> one line, number of the first: … stderr P RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB

    0: [rank2]: RuntimeError: CUDA out of mem            what one read of srun's held of task 0, under its label
    0: ory. Tried to allocate 2.00 GiB                   the rest, under the label again
    -> one line, number of the first: 0: [rank2]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB

CRI log files (Kubernetes: containerd, CRI-O): a part holds 16 KiB at most. Parts between which a line was not kept stay apart.

`srun -l` labels whatever it read of a task, and ends it with a line feed (slurm src/common/write_labelled_message.c): a line that one read
ends in has two labels. Nothing marks that. It shows where a rank's own tag is broken ("0: [ra", "0: nk2]: …"), and where the parts are the
line that another rank wrote whole.
"""

from __future__ import annotations

import re

from forensics.ingest.pattern import Pattern

_CRI = Pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+\-]\d\d:?\d\d) std(?:out|err) (?P<tag>[FP])(?: |$)")
#: parts of one line
_MOST = 64
#: srun's label of a task, and what ranks put before their lines themselves (torch's excepthook; torchrun --tee)
_LABEL = Pattern(r"(?P<task> {0,5}\d{1,6}: )(?P<rest>.*)", re.DOTALL)
_TAG = Pattern(r"(?:\[(?:rank|default)\d{1,6}\]:){1,2}")
#: a tag that a read ended in
_BROKEN = Pattern(r"(?:\[default\d{1,6}\]:)?\[(?:r(?:a(?:n(?:k(?:\d{1,6}\]?)?)?)?)?|d(?:e(?:f(?:a(?:u(?:l(?:t(?:\d{1,6}\]?)?)?)?)?)?)?)?)?")
#: lines that are asked whether srun labelled any, and lines of others that may stand between two parts
_ASKED, _EACH, _BETWEEN = 400, 50, 400
#: characters that a line must have to be known again
_TELLING = 12


def whole_lines(kept: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines with parts put together; the same list where the source has none."""
    if not kept:
        return kept
    if _CRI.match(kept[0][1]) is not None:
        return _of_cri(kept)
    if any(_LABEL.match(text) for _, text in (*kept[:_ASKED], *kept[_ASKED::_EACH])):
        return _of_srun(kept)
    return kept


def _of_srun(kept: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """What srun read in two goes, put together where that is certain."""
    found = [_LABEL.match(text) for _, text in kept]
    tags = [_TAG.match(one["rest"]) if one is not None else None for one in found]
    said = {one["rest"][tag.end() :] for one, tag in zip(found, tags, strict=True) if one is not None and tag is not None}
    out: list[tuple[int, str] | None] = []
    last: dict[str, int] = {}
    for place, (one, tag) in enumerate(zip(found, tags, strict=True)):
        out.append(kept[place])
        if one is None:
            continue
        task, rest = one["task"], one["rest"]
        before = last.get(task, -1)
        head = out[before] if before >= 0 and place - before <= _BETWEEN else None
        last[task] = place
        if head is None or tag is not None:
            continue
        whole = head[1][len(task) :] + rest
        own = _TAG.match(whole)
        if own is None or (rest.startswith("[") and not _BROKEN.fullmatch(head[1][len(task) :])):
            continue
        if _BROKEN.fullmatch(head[1][len(task) :]) or (len(whole) - own.end() >= _TELLING and whole[own.end() :] in said):
            out[before], out[place], last[task] = (head[0], task + whole), None, before
    lines = [line for line in out if line is not None]
    return lines if len(lines) < len(kept) else kept


def _of_cri(kept: list[tuple[int, str]]) -> list[tuple[int, str]]:
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
