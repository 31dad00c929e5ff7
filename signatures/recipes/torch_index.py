"""An index outside of its table.

On a GPU the same call ends in a device-side assertion; on the host the check says which index it was.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"op": "embedding", "rows": 10, "beyond": 0, "count": 4}
# --- end of data ---


def prepare(p, variant):
    """The look-up: count indices, the last of them outside of the table."""
    torch = seeded(p)
    rows = p["rows"]
    index = torch.zeros(p["count"], dtype=torch.int64)
    index[-1] = rows - 1 if variant == "in-range" else rows + p["beyond"]
    if p["op"] == "embedding":
        table = torch.randn(rows, 4)
        return lambda: torch.nn.functional.embedding(index, table)
    if p["op"] in ("select", "gather"):  # the same words, from two exceptions
        values = torch.randn(rows)
        return (lambda: values[index]) if p["op"] == "select" else (lambda: values.gather(0, index))
    logits = torch.randn(p["count"], rows)
    return lambda: torch.nn.functional.cross_entropy(logits, index)


if __name__ == "__main__":
    main(globals())
