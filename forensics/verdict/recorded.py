"""Tracebacks that torch's agent copies into its summary. In: sightings of one run; out: fewer, the copies with their ranks. Sample:

      rank      : 5 (local_rank: 1)
      exitcode  : 1 (pid: 4012)
      traceback : Traceback (most recent call last):
        File "train.py", line 40, in main
      KeyError: 'oov'
-> the KeyError is rank 5's; its exit is no failure of its own. The summary lists first what the agent saw last.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.verdict.sighting import Sighting

#: how a summary's field begins that holds the traceback itself
_RECORDED = "Traceback (most recent call last)"


def join_recorded(seen: Sequence[Sighting]) -> list[Sighting]:
    """The sightings, each exit of a summary that shows its traceback joined with that traceback."""
    ends = {
        (s.span.source, line): s
        for s in seen
        if s.kind == "exit" and s.events and str(s.events[0].fields.get("traceback", "")).lstrip('"').startswith(_RECORDED)
        for line in (s.span.last_line, s.span.last_line + 1)
    }
    gone: set[int] = set()
    for sighting in seen if ends else ():
        end = ends.get((sighting.span.source, sighting.span.first_line)) if sighting.kind == "python" else None
        if end is None or id(end) in gone:
            continue
        sighting.rank = end.rank or sighting.rank  # a prefix names the agent that printed the summary
        sighting.events = [*sighting.events, *end.events]
        sighting.spans = [*sighting.spans, *end.spans]
        gone.add(id(end))
    return [s for s in seen if id(s) not in gone]


def is_recorded(sighting: Sighting) -> bool:
    """True for a traceback that stands in a summary."""
    return sighting.kind == "python" and any(e.fields.get("what") == "summary" for e in sighting.events)


def is_first(sighting: Sighting) -> bool:
    """True where the launcher calls this end the first that it saw."""
    return any(event.fields.get("first_observed") is True for event in sighting.events)
