"""`forensics completion SHELL`: the script that completes commands, options and paths. In: a shell; out: text. Sample:

eval "$(forensics completion bash)"
"""

from __future__ import annotations

import click

from forensics.cli.output import emit


@click.command(
    epilog="""\b
Examples:
  eval "$(forensics completion bash)"                                    in ~/.bashrc
  eval "$(forensics completion zsh)"                                     in ~/.zshrc
  forensics completion fish > ~/.config/fish/completions/forensics.fish"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script for SHELL."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    root = ctx.find_root().command
    emit((made(root, {}, "forensics", "_FORENSICS_COMPLETE").source() + "\n").encode())
    return 0
