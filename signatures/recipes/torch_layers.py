"""A layer or a loss that gets a tensor of another shape than it was made for.

The check is on the host: no GPU is needed to see it.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"op": "conv2d", "wanted": 3, "given": 4, "rows": 2, "rows_b": 2, "kernel": 3}
# --- end of data ---


def prepare(p, variant):
    """The call. "fitting" gives the tensor the size that is wanted."""
    torch = seeded(p)
    wanted, rows = p["wanted"], p["rows"]
    given = wanted if variant == "fitting" else p["given"]
    if p["op"] == "conv2d":
        image, weight = torch.randn(rows, given, p["kernel"], p["kernel"]), torch.randn(8, wanted, p["kernel"], p["kernel"])
        return lambda: torch.nn.functional.conv2d(image, weight)
    if p["op"] == "layer_norm":
        hidden = torch.randn(rows, given)
        return lambda: torch.nn.functional.layer_norm(hidden, (wanted,))
    if p["op"] == "stack":
        first, second = torch.randn(rows, wanted), torch.randn(rows if variant == "fitting" else p["rows_b"], given)
        return lambda: torch.stack([first, second])
    if p["op"] == "expand":
        mask = torch.randn(rows, given)
        return lambda: mask.expand(rows, wanted)
    if p["op"] == "cross_entropy":
        scores, labels = torch.randn(wanted, 8), torch.zeros(given, dtype=torch.long)
        return lambda: torch.nn.functional.cross_entropy(scores, labels)
    left, right = torch.randn(rows, wanted), torch.randn(given, rows)
    return lambda: torch.einsum("ij,jk->ik", left, right)


if __name__ == "__main__":
    main(globals())
