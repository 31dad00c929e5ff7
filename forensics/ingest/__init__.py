"""Bytes of any origin -> retained lines that know their rank and time. Public verb: `read`."""

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake

__all__ = ["Anchor", "Intake"]
