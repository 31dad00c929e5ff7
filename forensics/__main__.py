"""`python -m forensics`, and the `forensics` command. Out: an exit code."""

import os
import sys


def run() -> int:
    """The command line; a Ctrl-C while it is still being loaded is one word, too."""
    try:
        from forensics.cli.main import main

        code = main()
        _end(code)
        return code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def _end(code: int) -> None:
    """Ends the process where nothing is left to do: taking apart what it holds takes a tenth of the time that a short log needs. Returns
    where somebody measures it, or has something to do at its end, or where what was written cannot go out: that is Python's to tell."""
    import atexit

    threading = sys.modules.get("threading")
    has_threads = threading is not None and threading.active_count() > 1
    wanted = getattr(atexit, "_ncallbacks", lambda: 1)()  # CPython's
    monitoring = getattr(sys, "monitoring", None)  # where profilers and debuggers sit from Python 3.12 on
    watched = monitoring is not None and any(monitoring.get_tool(number) for number in range(6))
    if sys.gettrace() or sys.getprofile() or watched or has_threads or wanted:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


if __name__ == "__main__":
    sys.exit(run())
