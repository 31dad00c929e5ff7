"""The command line: words in, exit code out. Public verb: `main` in `forensics.cli.main`."""

import gc

# What is imported and parsed lives until the end: the cyclic collector would walk it again and again for nothing.
gc.set_threshold(200_000, 50, 50)
