"""Errors a user may see. In: what went wrong; out: a four-part message and an exit code. Sample:

    error: cannot read /logs/a.gz: the gzip data ends early
      where: byte 1048576
      help:  the file may still be being written; copy it again
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command (report-contract: `forensics analyze`)."""

    HEALTHY = 0
    FAILURE_FOUND = 1
    USAGE = 2
    NOT_UNDERSTOOD = 3
    UNREADABLE = 4
    INTERRUPTED = 130


class ForensicsError(Exception):
    """Raised for everything that the user can act on; never shown as a traceback.

    what: what could not be done; why: the reason; where: file, line, key or byte; help: what to do now.
    """

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        where: str = "",
        help: str = "",
        code: ExitCode = ExitCode.UNREADABLE,
    ) -> None:
        super().__init__(what)
        self.what, self.why, self.where, self.help, self.code = what, why, where, help, code

    def __str__(self) -> str:
        head = f"{self.what}: {self.why}" if self.why else self.what
        rest = [f"\n  {name} {text}" for name, text in (("where:", self.where), ("help: ", self.help)) if text]
        return head + "".join(rest)


class UsageError(ForensicsError):
    """A wrong flag, argument or combination of them (exit code 2)."""

    def __init__(self, what: str, *, why: str = "", where: str = "", help: str = "") -> None:
        super().__init__(what, why=why, where=where, help=help, code=ExitCode.USAGE)
