"""`forensics schema`: the JSON Schema of the report. In: nothing; out: JSON on standard output. Sample:

forensics schema | jq '.properties | keys'
"""

from __future__ import annotations

import json

import click

from forensics.cli.output import emit


@click.command(epilog="Example:  forensics schema > forensics-report.schema.json")
def schema() -> int:
    """Print the JSON Schema of `--format json`, generated from the code."""
    from forensics.report.contract import schema as generated

    emit((json.dumps(generated(), indent=2, ensure_ascii=False) + "\n").encode())
    return 0
