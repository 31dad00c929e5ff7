"""A prefix that no dialect describes, learnt from a source's own tracebacks. In: texts of a source's first lines; out: a pattern.

    1f9c-7 || Traceback (most recent call last):
    1f9c-7 ||   File "/app/train.py", line 12, in <module>
    1f9c-8 ||     main()
    -> the pattern `1f9c-\\d+ \\|\\| `, which then comes off every line

Python prints `  File "…", line N` at the left margin: what stands before it was put there by whoever collected the log. Digits may
differ from line to line, the rest may not. Several hosts ("node-a: ", "10.0.0.7: ") are several prefixes. A "[rank3]: " at its end
is no part of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from forensics.ingest.pattern import Pattern

#: as long as a prefix can be
_LONGEST = 160
_FRAME = Pattern(r"  File \"[^\"]{1,400}\", line \d+")
_START = "Traceback (most recent call last):"
#: a prefix names something; rulers of exception groups and comments do not
_NAMES = re.compile(r"[A-Za-z0-9]")
_DIGITS = re.compile(r"\d+")
#: frames and beginnings that must carry it
_ENOUGH = 2
#: prefixes of one source
_MOST = 8
#: a prefix of its own, told by its dialect
_RANK = "[rank"


def learn(texts: Iterable[str]) -> re.Pattern[str] | None:
    """The prefix that tracebacks carry, or None where they stand at the margin. texts: lines without their known prefixes."""
    seen: Counter[str] = Counter()
    framed: set[str] = set()
    for text in texts:
        frame = 'File "' in text
        if frame:
            found = _FRAME.search(text[: _LONGEST + 600])
            at = found.start() if found else 0
        else:
            at = text.find(_START, 0, _LONGEST + len(_START))
        if (mark := text.find(_RANK, 0, at)) > 0:
            at = mark
        if 0 < at <= _LONGEST and (at < 2 or text[:at].strip()):
            shape = _DIGITS.sub("0", text[:at])
            seen[shape] += 1
            if frame:
                framed.add(shape)
    # "… hit an exception: Traceback" is a heading: the frames below it stand at the margin
    shapes = [
        shape
        for place, (shape, count) in enumerate(seen.most_common(_MOST))
        if count >= _ENOUGH and shape in framed and _NAMES.search(shape) and (not place or shape.endswith(": "))
    ]
    if not shapes or shapes[0] != seen.most_common(1)[0][0]:
        return None
    return re.compile("|".join(r"\d{1,24}".join(re.escape(part) for part in shape.split("0")) for shape in shapes))
