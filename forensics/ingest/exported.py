"""Records that a log store exported as one document. In: (number, text) of all lines of a source; out: one line a record. Samples:

    [
      {"severity": "ERROR", "textPayload": "RuntimeError: shard 7 is empty", "timestamp": "2026-11-29T20:15:21Z"},
      …
    ]
    -> (2, '{"severity": "ERROR", "textPayload": …}'), …           the number is that of the record's first line

    "@timestamp","host","message"
    "2026-11-29T20:15:21Z","node4","RuntimeError: shard 7 is empty"
    -> (2, '{"message": "RuntimeError: shard 7 is empty", "time": "2026-11-29T20:15:21Z", "host": "node4"}'), …

So `gcloud logging read --format=json`, Elasticsearch's and Loki's exports, and the tables
that Kibana, Datadog and Splunk save as CSV, are read as the same records one a line would be.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

#: a bigger array is left as it is
_MOST = 8 * 1024 * 1024
_BLANK = " \t\r\n,"
#: how columns are called by those who export, in small letters: key of a record -> names
_COLUMNS = {
    "message": ("message", "content", "@message", "log", "textpayload", "jsonpayload.message", "body", "_raw", "line"),
    "time": ("@timestamp", "timestamp", "time", "date", "_time", "datetime", "receivetimestamp"),
    "host": ("host", "hostname", "node"),
    "container_name": ("service", "container", "container_name", "pod", "pod_name", "kubernetes.pod_name"),
    "level": ("severity", "level", "status"),
}
#: of a table, as many rows as this have all columns
_FULL = 0.9


def records(kept: list[tuple[int, str]]) -> list[tuple[int, str]] | None:
    """One line for each object of an array or row of a table; None where the source is neither."""
    head = next((text for _, text in kept if text.strip()), "").lstrip()
    names = [name.strip(' "\r\ufeff').lower() for name in head[:2_000].split(",")]
    if all(any(name in known for name in names) for known in (_COLUMNS["message"], _COLUMNS["time"])):
        return _rows(kept)
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
    if len({number for number, _ in out}) < len(out) // 2:
        return None  # on one line: nothing would tell their order, nor where they stand
    return out or None


def _rows(kept: list[tuple[int, str]]) -> list[tuple[int, str]] | None:
    """One line for each row of a table, with the number of its first line; a cell may hold several."""
    if kept[0][0] != 1 or kept[-1][0] != len(kept) or sum(len(text) for _, text in kept) > _MOST:
        return None
    import csv
    import json

    reader = csv.reader((text.rstrip("\r") + "\n" for _, text in kept), strict=True)
    out: list[tuple[int, str]] = []
    torn = 0
    try:
        names = [name.strip(" \ufeff").lower() for name in next(reader)]
        places = {key: next((i for i, name in enumerate(names) if name in known), -1) for key, known in _COLUMNS.items()}
        number = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(names):
                out.append((number, json.dumps({key: cells[i] for key, i in places.items() if i >= 0}, ensure_ascii=False)))
            else:
                torn += bool(cells)
            number = reader.line_num + 1
    except (csv.Error, StopIteration):
        return None
    return out if len(out) > 1 and torn <= (1 - _FULL) * len(out) else None
