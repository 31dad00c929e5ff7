"""The commands and their options, as click parses them. In: words; out: an exit code. Sample:

    call(["analyze", "--format", "json", "server.log"]) -> 1, with the report on standard output

Sub-commands are imported when called, so that none pays for the others.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from forensics.cli.main import COMMANDS
from forensics.cli.talk import complain, tell_interrupted
from forensics.errors import ExitCode

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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


def tell_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Prints the version of the installed distribution and exits; a source tree that is not installed has none."""
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        told = version("gpu-forensics")
    except PackageNotFoundError:
        told = "unknown: this source tree is not installed"
    click.echo(f"forensics, version {told}")
    ctx.exit()


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
Exit codes: 0 nothing failed, 1 a failure was found or cannot be ruled out (status unknown, some of
several inputs not read), 2 wrong usage, 3 nothing in the input was understood, 4 the input could
not be read or the report not written, 130 interrupted.""",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=tell_version, help="Show the version and exit.")
def forensics() -> None:
    """Reads the log of a crashed or hung multi-GPU job and says what failed first, where, why, and what to do.

    \b
    forensics [PATH…]          is short for   forensics analyze [PATH…]
    … | forensics              reads standard input

    Nothing leaves this machine.
    """


def call(words: list[str]) -> int:
    """Runs a command; what is wrong with its words is said here. Raises ForensicsError, and what goes wrong inside."""
    try:
        code = forensics.main(args=words, prog_name="forensics", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "forensics"
        file = next((word for word in words if word.startswith("-") and word != "-" and os.path.exists(word)), "")
        help = f"{where} ./{file}, where {file} is a file" if file else f"{where} --help"
        why = error.format_message().rstrip(".")
        complain(f"this command cannot be carried out: {why}\n  where: {where}\n  help:  {help}")
        return ExitCode.USAGE
    except click.Abort:
        tell_interrupted()
        return ExitCode.INTERRUPTED
    return int(code) if isinstance(code, int) else ExitCode.HEALTHY


def _exists(module: str) -> bool:
    """Whether a command's file is there, without importing it."""
    return os.path.exists(os.path.join(os.path.dirname(__file__), module.rsplit(".", 1)[-1] + ".py"))
