"""As many generated logs as there is time for. In: a count and a first seed; out: a count, or the seeds that broke a promise.

    python -m tests.fuzz.many 1000000 --batch 50 --budget-s 60

Each batch is one job of many sources; every tenth is a single log, whose quotes are compared with what stands in it. The report of
every batch is held against its schema; the faces for people are rendered for every tenth. A batch that fails is tried log by log, so
that the seed is known, and the run goes on.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from random import Random
from typing import Any

from forensics.errors import ForensicsError
from forensics.pipeline import analyze

from .build import log, tiny
from .invariants import check


class _Late(BaseException):
    """Not an Exception: the pipeline must not take it for an error of a stage."""


def built(seed: int) -> bytes:
    """The log of one seed: every eighth of ordinary size, the others of a few lines."""
    return (log if seed % 8 == 0 else tiny)(Random(seed))


def tried(inputs: Sequence[bytes], budget_s: int, faces: Sequence[str]) -> str:
    """ "" where every promise was kept, "refused" where the input was, else what broke."""
    signal.alarm(budget_s)
    try:
        check(inputs, analyze(list(inputs)), faces)
    except ForensicsError:
        return "refused"
    except (_Late, Exception) as error:
        return f"{type(error).__name__}: {str(error)[:600]}"
    finally:
        signal.alarm(0)
    return ""


def main() -> int:
    """Runs until the count or the time is reached."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("count", type=int)
    ask.add_argument("--first", type=int, default=0)
    ask.add_argument("--batch", type=int, default=50)
    ask.add_argument("--budget-s", type=int, default=60, help="a batch that takes longer is a hang")
    ask.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    told = ask.parse_args()
    started, done, refused, broken, batches = time.monotonic(), 0, 0, 0, 0

    def late(*_: Any) -> None:
        raise _Late(f"over {told.budget_s} s")

    signal.signal(signal.SIGALRM, late)
    while done < told.count and time.monotonic() - started < told.minutes * 60:
        first = told.first + done
        size = 1 if batches % 10 == 9 else told.batch
        inputs = [built(seed) for seed in range(first, first + size)]
        faces = ("console", "markdown", "html", "github") if batches % 10 in (0, 9) else ()
        said = tried(inputs, told.budget_s, faces)
        if said == "refused":
            refused += 1
        elif said:
            broken += 1
            alone = {first + at: why for at, one in enumerate(inputs) if (why := tried([one], told.budget_s, faces))}
            print(f"seeds {first}…{first + size - 1}: {said}\n  alone: {alone or 'each is fine'}", file=sys.stderr, flush=True)
        done, batches = done + size, batches + 1
        if batches % 100 == 0:
            print(f"{done:,} inputs, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    took = time.monotonic() - started
    print(f"{done:,} generated inputs in {batches:,} batches: {broken} broken, {refused} refused with a message, {took:.0f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
