"""The command line: words in, exit code out. Public verb: `main` in `forensics.cli.main`."""
