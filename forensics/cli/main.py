"""The command line's front door. In: words; out: an exit code (errors.ExitCode). Sample:

    forensics server.log            -> forensics analyze server.log
    cat server.log | forensics      -> forensics analyze -
    forensics schema                -> the JSON Schema of the report

Sub-commands are imported when called, so that `forensics` on a log never pays for the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from forensics.cli.output import let_go_of_stdout
from forensics.cli.talk import complain, tell_interrupted
from forensics.errors import ExitCode, ForensicsError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

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


class Commands(click.Group):
    """A group whose commands are imported when they are called, and whose default command is `analyze`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (module, _, _) in COMMANDS.items() if _exists(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        import importlib

        module, attribute, _ = COMMANDS[cmd_name]
        if not _exists(module):
            return None
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and what the default command would take in their place."""
        found = super().shell_complete(ctx, incomplete)
        default = self.get_command(ctx, "analyze")
        assert default is not None
        with default.make_context("analyze", [], parent=ctx, resilient_parsing=True) as inner:
            found += default.shell_complete(inner, incomplete)
            if not incomplete.startswith("-"):
                found += default.params[0].shell_complete(inner, incomplete)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Without importing a single one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in COMMANDS and self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        return super().resolve_command(ctx, ["analyze", *args])


@click.group(
    cls=Commands,
    name="forensics",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  forensics server.log                     one log
  kubectl logs pod-0 | forensics           a pipe
  forensics run/ --gpu "RTX PRO 6000"      a folder of logs; the GPU, where no log names it
  forensics server.log --format json       for scripts
  forensics analyze --help                 every option of the analysis

\b
Exit codes: 0 nothing failed, 1 a failure was found, 2 wrong usage, 3 nothing in the input was
understood, 4 the input could not be read, 130 interrupted.""",
)
@click.version_option(package_name="gpu-forensics", prog_name="forensics")
def forensics() -> None:
    """Reads the log of a crashed or hung multi-GPU job and says what failed first, where, why, and what to do.

    \b
    forensics [PATH…]          is short for   forensics analyze [PATH…]
    … | forensics              reads standard input

    Nothing leaves this machine.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; the only place where errors become words."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words or bool(os.environ.get("FORENSICS_DEBUG"))
    try:
        code = forensics.main(args=_with_default(words), prog_name="forensics", standalone_mode=False)
        return int(code) if isinstance(code, int) else ExitCode.HEALTHY
    except ForensicsError as error:
        complain(str(error))
        return error.code
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "forensics"
        complain(error.format_message() + f"\n  help:  {where} --help")
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
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
        return ["analyze"] if sys.stdin is not None and not sys.stdin.isatty() else ["--help"]
    if words[0] in COMMANDS or words[0] in ("-h", "--help", "--version"):
        return words
    return ["analyze", *words]


def _exists(module: str) -> bool:
    """Whether a command's file is there, without importing it."""
    return os.path.exists(os.path.join(os.path.dirname(__file__), module.rsplit(".", 1)[-1] + ".py"))


if __name__ == "__main__":
    sys.exit(main())
