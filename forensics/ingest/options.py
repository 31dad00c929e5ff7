"""How much ingest reads and keeps. In: nothing; out: `ReadOptions`. Sample:

ReadOptions(whole_below=0)      # never keep a whole input, only what anchors ask for
"""

from __future__ import annotations

from collections.abc import Callable

from forensics.model.record import record
from forensics.model.source import LogLine


@record
class ReadOptions:
    """All sizes in bytes, all counts in lines.

    whole_below: an input up to this size is kept whole; edge_lines: lines kept at the head and at the tail of a bigger one;
    budget: bytes of marked regions kept per source; line_cap: a longer line is cut; archive_members, archive_bytes: limits
    of one archive; processes: 0 = as many as pay off; engine: "auto", "hyperscan", "ahocorasick" or "find".
    on_progress: called now and then with (bytes done of all inputs, bytes in all or None); on_news: called with marked lines of
    standard input as they come in, of lines that are alike with the first; meanwhile: called once where this process waits for others
    that still read, which is arranged to happen.
    """

    whole_below: int = 128 * 1024
    edge_lines: int = 200
    budget: int = 6 * 1024 * 1024
    line_cap: int = 256 * 1024
    archive_members: int = 10_000
    archive_bytes: int = 16 * 1024 * 1024 * 1024
    processes: int = 0
    engine: str = "auto"
    on_progress: Callable[[int, int | None], None] | None = None
    on_news: Callable[[list[LogLine]], None] | None = None
    meanwhile: Callable[[], None] | None = None


DEFAULT = ReadOptions()
