"""gather, scatter, indexing, a label or a probability out of its range.

The kernel asserts; the Python line that reports it may be a later one.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"form": "gather", "size": 16, "count": 4}
# --- end of data ---


def prepare(p, variant):
    """count indices into size values; the last one is the first that is out of range."""
    torch = seeded(p)
    size, count, good = p["size"], p["count"], variant == "in-range"
    index = torch.zeros(count, dtype=torch.int64)
    index[-1] = size - 1 if good else size
    index = index.cuda()
    values = torch.rand(size, device="cuda")
    calls = {
        "gather": lambda: values.gather(0, index),
        "scatter": lambda: values.scatter(0, index, 1.0),
        "index": lambda: values[index],
        "nll_loss": lambda: torch.nn.functional.nll_loss(torch.randn(count, size, device="cuda"), index),
        "one_hot": lambda: torch.nn.functional.one_hot(index, size),
        "multinomial": lambda: torch.multinomial(values if good else values * float("nan"), 1),
    }

    def call():
        calls[p["form"]]()
        torch.cuda.synchronize()

    return call


if __name__ == "__main__":
    main(globals())
