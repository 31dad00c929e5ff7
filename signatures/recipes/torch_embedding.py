"""An embedding look-up with an index outside of its table.

The kernel asserts, the CUDA context is lost, and every later call reports it: with launch-blocking it is this call.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"rows": 10, "width": 4, "count": 4, "index": 100}
# --- end of data ---


def prepare(p, variant):
    """count indices, the last of them outside."""
    torch = seeded(p)
    table = torch.nn.Embedding(p["rows"], p["width"], device="cuda")
    index = torch.zeros(p["count"], dtype=torch.int64)
    index[-1] = min(p["index"], p["rows"] - 1) if variant == "in-range" else p["index"]
    index = index.cuda()

    def look_up():
        result = table(index)
        torch.cuda.synchronize()
        return result

    return look_up


if __name__ == "__main__":
    main(globals())
