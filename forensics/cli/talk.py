"""What is said on standard error: errors and nothing else that a pipe would have to filter. In: words; out: none. Sample:

complain("cannot read a.log: permission denied\\n  help:  …") -> "error: cannot read a.log: …" on standard error
"""

from __future__ import annotations

import sys

#: everything that moves a terminal's cursor or hides text, except the line end
_UNSAFE = {code: f"\\x{code:02x}" for code in [*range(0x20), *range(0x7F, 0xA0)] if code != 0x0A}


def say(text: str) -> None:
    """One message on standard error; never an exception, since there may be nobody to read it."""
    try:
        print(text.translate(_UNSAFE), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


def complain(text: str) -> None:
    """An error in up to four parts (see `ForensicsError`)."""
    say(f"error: {text}")


def tell_interrupted() -> None:
    """The last word after Ctrl-C."""
    say("interrupted")
