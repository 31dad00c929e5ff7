"""A prefix that no dialect describes, learnt from a source's own tracebacks. In: texts of a source's first lines; out: a pattern.

    1f9c-7 || Traceback (most recent call last):
    1f9c-7 ||   File "/app/train.py", line 12, in <module>
    1f9c-8 ||     main()
    -> the pattern `1f9c-\\d+ \\|\\| `, which then comes off every line

Python prints `  File "…", line N` at the left margin: what stands before it was put there by whoever collected the log. Digits may
differ from line to line, the rest may not.
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
        if 0 < at <= _LONGEST and (at < 2 or text[:at].strip()):
            shape = _DIGITS.sub("0", text[:at])
            seen[shape] += 1
            if frame:
                framed.add(shape)
    for shape, count in seen.most_common(1):
        # "… hit an exception: Traceback" is a heading: the frames below it stand at the margin
        if count >= _ENOUGH and shape in framed and _NAMES.search(shape):
            return re.compile(r"\d{1,24}".join(re.escape(part) for part in shape.split("0")))
    return None
