"""What stays of a message from run to run. In: text; out: text without numbers, addresses and white space. Sample:

"mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8)" -> "mat# and mat# shapes cannot be multiplied (#x# and #x#)"
"""

from __future__ import annotations

import re

_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


def masked(text: str) -> str:
    """The same as `masked` in signatures/recipes/runtime.py, which scripts carry: a test holds the two together."""
    return " ".join(_CHANGING.sub("#", text[:20000]).split())
