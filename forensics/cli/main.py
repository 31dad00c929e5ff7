"""The command line's front door. In: words; out: an exit code (errors.ExitCode). Sample:

    forensics server.log            -> forensics analyze server.log
    cat server.log | forensics      -> forensics analyze -
    forensics schema                -> the JSON Schema of the report

Words that are nothing but paths and a format need no parser of options: click is imported for all the others, and takes as long as
the analysis of a small log.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from forensics.cli.output import let_go_of_stdout
from forensics.cli.talk import complain, tell_interrupted
from forensics.errors import ExitCode, ForensicsError
from forensics.report import FORMATS

#: name -> (module, attribute, one line for --help); in the order of --help
COMMANDS: dict[str, tuple[str, str, str]] = {
    "analyze": (
        "forensics.cli.analyze_command",
        "analyze",
        "What failed first, where, why, and what to do (the default).",
    ),
    "tui": ("forensics.cli.tui_command", "tui", "The same, to walk through: ranks, stacks, evidence in its place."),
    "diff": ("forensics.cli.diff_command", "diff", "What differs between a good and a bad run."),
    "repro": (
        "forensics.cli.repro_commands",
        "repro",
        "A script that reproduces the failure, and what came of running it.",
    ),
    "signatures": ("forensics.cli.signature_commands", "signatures", "List, show and check the known failures."),
    "gpu": ("forensics.cli.knowledge_commands", "gpu", "What is known of a GPU."),
    "support": (
        "forensics.cli.knowledge_commands",
        "support",
        "The GPUs that an operation or backend runs on.",
    ),
    "kernel": ("forensics.cli.knowledge_commands", "kernel", "A kernel's name in words, and the GPUs that can run it."),
    "binary": ("forensics.cli.knowledge_commands", "binary", "The GPU architectures inside a library, cubin or wheel."),
    "schema": ("forensics.cli.schema_command", "schema", "Print the JSON Schema of `--format json`."),
    "completion": ("forensics.cli.completion_command", "completion", "Print the shell completion script."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code."""
    code = _run(list(sys.argv[1:] if argv is None else argv))
    if argv is None:
        # The process ends here: the cyclic collector need not walk everything once more.
        gc.freeze()
    return code


def _run(words: list[str]) -> int:
    """The only place where errors become words."""
    debug = "--debug" in words or bool(os.environ.get("FORENSICS_DEBUG"))
    try:
        words = _with_default(words)
        if (plain := _plain(words)) is not None:
            from forensics.cli.analysis import report

            paths, format_ = plain
            return report(paths, format_=format_)
        from forensics.cli.commands import call

        return call(words)
    except ForensicsError as error:
        command = " ".join(["forensics", *words[:1]]) if words[:1] and words[0] in COMMANDS else "forensics"
        error.where, error.help = error.where or command, error.help or f"{command} --help"
        complain(str(error))
        return error.code
    except KeyboardInterrupt:
        tell_interrupted()
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        let_go_of_stdout()
        return ExitCode.FAILURE_FOUND
    except Exception as error:
        if debug:
            raise
        complain(
            f"an error inside forensics: {type(error).__name__}: {error}\n"
            "  help:  run again with --debug and report what it prints; your log is not needed for that"
        )
        return ExitCode.UNREADABLE


def _with_default(words: list[str]) -> list[str]:
    """`forensics`, `forensics PATH…` and `forensics --format json …` mean `analyze`."""
    if os.environ.get("_FORENSICS_COMPLETE"):
        return words
    if not words:
        return ["--help"] if sys.stdin is not None and sys.stdin.isatty() else ["analyze"]
    if words[0] in COMMANDS or words[0] in ("-h", "--help", "--version"):
        return words
    return ["analyze", *words]


def _plain(words: list[str]) -> tuple[list[str], str | None] | None:
    """(paths, format) where it is `analyze` and paths, with no option among them but one `--format`; else None."""
    if words[:1] != ["analyze"] or os.environ.get("_FORENSICS_COMPLETE"):
        return None
    paths, format_ = words[1:], None
    if "--format" in paths[:-1]:
        at = paths.index("--format")
        format_ = paths[at + 1]
        if format_ not in FORMATS:
            return None
        del paths[at : at + 2]
    return None if any(word.startswith("-") and word != "-" for word in paths) else (paths, format_)


if __name__ == "__main__":
    sys.exit(main())
