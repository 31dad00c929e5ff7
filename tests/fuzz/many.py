"""As many generated logs as there is time for. In: a count and a first seed; out: a count, or the seed that broke a promise.

    python -m tests.fuzz.many 1000000 --batch 50 --budget-s 20
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from random import Random
from typing import Any

from forensics.errors import ForensicsError
from forensics.pipeline import analyze

from .build import log
from .invariants import check


def main() -> int:
    """Each batch is one job of many sources, every tenth a log on its own with the checks that need one source."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("count", type=int)
    ask.add_argument("--first", type=int, default=0)
    ask.add_argument("--batch", type=int, default=50)
    ask.add_argument("--budget-s", type=int, default=20, help="a batch that takes longer is a hang")
    told = ask.parse_args()
    started, done, refused = time.monotonic(), 0, 0

    def late(*_: Any) -> None:
        raise TimeoutError(f"over {told.budget_s} s")

    signal.signal(signal.SIGALRM, late)
    while done < told.count:
        first = told.first + done
        size = 1 if (done // told.batch) % 10 == 9 else told.batch
        inputs = [log(Random(seed)) for seed in range(first, first + size)]
        signal.alarm(told.budget_s)
        try:
            check(inputs, analyze(inputs))
        except ForensicsError:
            refused += 1
        except BaseException as error:
            print(f"seeds {first}…{first + size - 1}: {type(error).__name__}: {str(error)[:2000]}", file=sys.stderr)
            return 1
        finally:
            signal.alarm(0)
        done += size
        if done % (told.batch * 200) < size:
            print(f"{done:,} inputs, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(f"{done:,} generated inputs, {refused} jobs refused with a message, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
