"""Signals by number and by the words programs use for them; exit codes that mean a signal. In: a number or text; out: a name.

    signal_name(11) -> "SIGSEGV"; signal_in("Segmentation fault (core dumped)") -> "SIGSEGV"; signal_of_exit(137) -> "SIGKILL"

Numbers as on Linux for x86-64 and arm64 (signal(7)). Stands above reading.py.
"""

from __future__ import annotations

from forensics.model.event import ProcessExit

_NAMES = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    16: "SIGSTKFLT",
    17: "SIGCHLD",
    18: "SIGCONT",
    19: "SIGSTOP",
    20: "SIGTSTP",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}

#: how a process ends that nobody asked to, by a fault of its own
FAULTS = frozenset(("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"))

#: strsignal(3) and shells' words, longest first where one holds another
_WORDS = (
    ("Segmentation fault", "SIGSEGV"),
    ("segmentation violation", "SIGSEGV"),
    ("Bus error", "SIGBUS"),
    ("Illegal instruction", "SIGILL"),
    ("Floating point exception", "SIGFPE"),
    ("Aborted", "SIGABRT"),
    ("IOT instruction", "SIGABRT"),
    ("IOT trap", "SIGABRT"),
    ("Abort trap", "SIGABRT"),
    ("abort", "SIGABRT"),
    ("segmentation fault", "SIGSEGV"),
    ("bus error", "SIGBUS"),
    ("illegal hardware instruction", "SIGILL"),
    ("floating point exception", "SIGFPE"),
    ("Killed", "SIGKILL"),
    ("signal: killed", "SIGKILL"),
    ("Terminated", "SIGTERM"),
    ("Trace/breakpoint trap", "SIGTRAP"),
    ("Bad system call", "SIGSYS"),
    ("CPU time limit exceeded", "SIGXCPU"),
    ("File size limit exceeded", "SIGXFSZ"),
    ("Hangup", "SIGHUP"),
    ("Quit", "SIGQUIT"),
    ("Interrupt", "SIGINT"),
)


def signal_name(number: int) -> str | None:
    """SIGSEGV for 11; None for a number that is no common signal."""
    return _NAMES.get(abs(number))


def signal_in(text: str) -> str | None:
    """The signal that a text names in words or as SIG…, or None."""
    at = text.find("SIG")
    if at >= 0:
        word = text[at : at + 12]
        for name in _NAMES.values():
            if word.startswith(name):
                return name
    return next((name for words, name in _WORDS if words in text), None)


def signal_of_exit(code: int) -> str | None:
    """The signal behind an exit code: negative (Python), or 128 + n (shells, containers); None otherwise."""
    if code < 0:
        return signal_name(-code)
    return signal_name(code - 128) if 128 < code < 160 else None


def exited(code: int, by: str, pid: int | None = None) -> ProcessExit:
    """A `ProcessExit` with the signal that follows from its code."""
    return ProcessExit(code, signal_of_exit(code), pid, by)
