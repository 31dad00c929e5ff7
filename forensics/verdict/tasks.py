"""The process that JAX's coordination service names, whoever tells of it. In: a failure; out: a rank. Samples:

    [rank0]: XlaRuntimeError: UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.      -> task 3, not rank 0
    # of tasks that reached the barrier: 7/8. … Some timed out task names: /job:jax_worker/replica:0/task:6   -> task 6
    RecordHeartbeat() from task: /job:jax_worker/replica:0/task:2 failed     -> nobody: that one was alive

A number is the process's own (process_id of jax.distributed.initialize). Of several that are named nobody says which came first.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest.pattern import Pattern
from forensics.model.source import Rank, RankActivity
from forensics.verdict.sighting import Sighting

_SILENT = Pattern(
    r"(?:/task:|\b[Tt]ask )(\d{1,6}),? heartbeat timeout|heartbeat has timed out for [^\n]{0,120}/task:(\d{1,6})\b"
    r"|/task:(\d{1,6}) has been set to ERROR"
)
_LIST = Pattern(r"\(stopped sending heartbeats\):?((?:\s{1,4}(?:/job:[\w.-]{1,80}/replica:\d{1,6}/task:)?\d{1,6}(?![\w/])){1,64})")
_LISTED = Pattern(r"(?:/task:|(?<!\S))(\d{1,6})(?!\S)")
_REACHED = Pattern(r"# of tasks that reached the barrier: (\d{1,6})/(\d{1,6})\b")
_MISSING = Pattern(r"timed out task names:((?:\s{1,4}/job:[\w.-]{1,80}/replica:\d{1,6}/task:\d{1,6}){1,64})")
_MOST = 4_000


def silent_task(first: Sighting, activity: Sequence[RankActivity]) -> Rank | None:
    """The one process whose heartbeats stopped, or that alone did not come to a barrier; None where none or several are named."""
    found: set[int] = set()
    for text in (text[:_MOST] for text in first.texts if "task" in text[:_MOST]):
        found |= {int(number) for one in _SILENT.findall(text) for number in one if number}
        for listed in _LIST.findall(text):
            found |= {int(number) for number in _LISTED.findall(listed)}
        found |= _absent(text)
    if len(found) != 1:
        return None
    number = found.pop()
    own = next((one.rank for one in activity if one.rank.number == number), None)
    return own or Rank(f"task {number}", number)


def _absent(text: str) -> set[int]:
    """Who did not reach a barrier, where all of those are listed ("some" of them are, of more than ten)."""
    reached, listed = _REACHED.search(text), _MISSING.search(text)
    if reached is None or listed is None:
        return set()
    numbers = {int(number) for number in _LISTED.findall(listed[1])}
    return numbers if len(numbers) == int(reached[2]) - int(reached[1]) else set()
