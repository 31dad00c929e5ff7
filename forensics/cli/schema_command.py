"""`forensics schema`: the JSON Schema of the report. In: nothing; out: JSON on standard output. Sample:

forensics schema | jq '.properties | keys'
"""

from __future__ import annotations

import os

import click

from forensics.cli.output import emit


@click.command(epilog="Example:  forensics schema > forensics-report.schema.json")
def schema() -> int:
    """Print the JSON Schema of `--format json`."""
    from forensics import report

    with open(os.path.join(os.path.dirname(report.__file__), "forensics-report.schema.json"), "rb") as file:
        emit(file.read())
    return 0
