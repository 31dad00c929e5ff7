"""Records that a log store exported as one JSON array. In: (number, text) of all lines of a source; out: one line a record. Sample:

    [
      {"severity": "ERROR", "textPayload": "RuntimeError: shard 7 is empty", "timestamp": "2026-11-29T20:15:21Z"},
      …
    ]
    -> (2, '{"severity": "ERROR", "textPayload": …}'), …           the number is that of the record's first line

So `gcloud logging read --format=json`, Elasticsearch's and Loki's exports are read as the same records one a line would be.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

#: a bigger array is left as it is
_MOST = 8 * 1024 * 1024
_BLANK = " \t\r\n,"


def records(kept: list[tuple[int, str]]) -> list[tuple[int, str]] | None:
    """One line for each object of an array; None where the source is no array of objects."""
    head = next((text for _, text in kept if text.strip()), "").lstrip()
    if not head.startswith("[") or head[1:].lstrip()[:1] not in ("", "{") or kept[0][0] != 1 or kept[-1][0] != len(kept):
        return None
    whole = "\n".join(text for _, text in kept)
    if len(whole) > _MOST:
        return None
    import json

    starts = list(accumulate((len(text) + 1 for _, text in kept[:-1]), initial=0))
    read = json.JSONDecoder().raw_decode
    out: list[tuple[int, str]] = []
    at = whole.index("[") + 1
    try:
        while True:
            while at < len(whole) and whole[at] in _BLANK:
                at += 1
            if at >= len(whole) or whole[at] != "{":
                break
            record, end = read(whole, at)
            out.append((bisect_right(starts, at), json.dumps(record, ensure_ascii=False)))
            at = end
    except (ValueError, RecursionError):
        pass  # an export that was cut off: what it holds before is read
    return out or None
