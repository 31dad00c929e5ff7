"""Bytes of any origin -> retained lines that know their rank and time.

Public verb: `read`; `from_text` for a text at hand. Beside them, loaded when asked for: `forensics.ingest.follow` for logs that
are still being written, `forensics.ingest.unwrap` for hard-wrapped lines.
"""

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.ingest.options import ReadOptions
from forensics.ingest.read import from_text, read

__all__ = ["Anchor", "Intake", "ReadOptions", "from_text", "read"]
