"""What tells how a job goes on: the lists of `signatures/verdict/progress.toml`. In: names of lists; out: one pattern. Sample:

    said_in("idle", "checks").search("GET /health HTTP/1.1 200")  ->  a match: nobody worked for that
"""

from __future__ import annotations

from functools import lru_cache

from forensics.data import table
from forensics.ingest.needles import needles_of_list
from forensics.ingest.pattern import Pattern


@lru_cache(maxsize=64)
def said_in(*keys: str) -> Pattern[str]:
    """The rows of these lists as one pattern."""
    rows = table("verdict/progress")
    needles = [needles_of_list("verdict/progress", key) for key in keys]
    known = None if None in needles else [word for words in needles for word in words or ()]
    return Pattern("|".join(row for key in keys for row in rows[key]), needles=known)
