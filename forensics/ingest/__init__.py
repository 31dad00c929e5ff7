"""Bytes of any origin -> retained lines that know their rank and time. Public verb: `read`; `from_text` for a text at hand."""

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.ingest.options import ReadOptions
from forensics.ingest.read import from_text, read

__all__ = ["Anchor", "Intake", "ReadOptions", "from_text", "read"]
