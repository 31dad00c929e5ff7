"""The analysis in a process of its own: a busy Python thread beside the scan slows it 40-fold. In: inputs and options; out:
messages, oldest first. Sample:

    with Analysis(["server.log"]) as job: list(job.messages()) -> [Progress(…), …, Done(Incident(…))]

The child is ours and speaks over a pipe of ours; nothing else is ever unpickled.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from forensics.errors import ForensicsError
from forensics.model.verdict import Incident


@dataclass(frozen=True, slots=True)
class Progress:
    """done, total: bytes; total None where it is not known."""

    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """The analysis ended well."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class Failed:
    """The analysis ended with an error; text: four parts, for people."""

    text: str


Message = Progress | Done | Failed


class Analysis:
    """One analysis under way. options: keyword arguments of `forensics.analyze`."""

    def __init__(self, inputs: Sequence[str], **options: Any) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "forensics.tui.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._child.stdin is not None
        pickle.dump((list(inputs), options), self._child.stdin)
        self._child.stdin.close()

    def messages(self) -> Iterator[Message]:
        """Blocks until each comes; ends after Done or Failed. A child that died is a Failed."""
        assert self._child.stdout is not None
        while True:
            try:
                message = pickle.load(self._child.stdout)
            except (EOFError, pickle.UnpicklingError, OSError, ValueError):
                yield Failed(f"the analysis stopped before it was done (exit code {self._child.wait()})")
                return
            yield message
            if not isinstance(message, Progress):
                return

    def close(self) -> None:
        """Ends the child, whatever it is doing."""
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(orders: BinaryIO, out: BinaryIO) -> None:
    from forensics.pipeline import analyze

    inputs, options = pickle.load(orders)

    def send(message: Message) -> None:
        pickle.dump(message, out, protocol=pickle.HIGHEST_PROTOCOL)
        out.flush()

    def on_progress(done: int, total: int | None = None, *_: object) -> None:
        send(Progress(done, total))

    try:
        send(Done(analyze(inputs, on_progress=on_progress, **options)))
    except ForensicsError as error:
        send(Failed(str(error)))
    except Exception as error:  # the app says it; a traceback on a screen helps nobody
        send(Failed(f"an error inside the analysis: {type(error).__name__}: {error}"))


if __name__ == "__main__":
    # As a module of its own name, so that both sides pickle the same classes.
    from forensics.tui import worker

    worker._serve(sys.stdin.buffer, sys.stdout.buffer)
