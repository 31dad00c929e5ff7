"""What a failure's own message says to do. In: the message; out: steps for the report. Sample:

    "… does not go with save_only_model=True. Either set save_only_model=False, or change state_dict_type to FULL_STATE_DICT."
    -> ["The message says: Either set save_only_model=False, or change state_dict_type to FULL_STATE_DICT."]

The wordings are knowledge (signatures/verdict/remedies.toml); what they ask for is the program's own word, not ours.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from forensics.data import table
from forensics.ingest.compiled import pattern_of

_LOOKED_AT = 4_000


class Remedy(NamedTuple):
    """A row of the table. step: words with the pattern's groups in braces; None where the group `said` is repeated."""

    pattern: re.Pattern[str]
    step: str | None


@lru_cache(maxsize=1)
def _rows() -> tuple[Remedy, ...]:
    return tuple(Remedy(pattern_of(row["pattern"], re.MULTILINE), row.get("step")) for row in table("verdict/remedies")["remedy"])


def remedies_in(message: str) -> list[str]:
    """Steps that the message names, one a row of the table."""
    steps = []
    for row in _rows():
        found = row.pattern.search(message[:_LOOKED_AT])
        if found is not None:
            steps.append(row.step.format_map(found.groupdict()) if row.step else f"The message says: {found['said'].strip()}.")
    return steps
