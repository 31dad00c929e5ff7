"""`python -m forensics`, and the `forensics` command. Out: an exit code."""

import sys


def run() -> int:
    """The command line; a Ctrl-C while it is still being loaded is one word, too."""
    try:
        from forensics.cli.main import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(run())
