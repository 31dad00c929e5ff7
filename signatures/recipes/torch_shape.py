"""A torch op that gets shapes which do not fit each other.

The check is on the host: no GPU is needed to see it.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"op": "matmul", "rows": 4, "batch_a": 2, "batch_b": 2, "inner_a": 8, "inner_b": 16, "columns": 8, "columns_b": 8}
# --- end of data ---


def prepare(p, variant):
    """The call. "fitting" gives the second tensor the size that the first asks for."""
    torch = seeded(p)
    a = p["inner_a"]
    b = a if variant == "fitting" else p["inner_b"]
    rows, columns = p["rows"], p["columns"]
    if p["op"] == "matmul":
        left, right = torch.randn(rows, a), torch.randn(b, columns)
        return lambda: torch.nn.functional.linear(left, right.t())
    if p["op"] == "bmm":
        left = torch.randn(p["batch_a"], rows, a)
        right = torch.randn(p["batch_a"] if variant == "fitting" else p["batch_b"], b, columns)
        return lambda: torch.bmm(left, right)
    if p["op"] == "add":
        left, right = torch.randn(rows, a), torch.randn(rows, b)
        return lambda: left + right
    if p["op"] == "cat":
        left, right = torch.randn(rows, a), torch.randn(rows, b)
        return lambda: torch.cat([left, right], dim=0)
    if p["op"] == "view":
        whole, size = torch.randn(a), (a if variant == "fitting" else a + 1)
        return lambda: whole.view(size, 1)
    saved, model = torch.nn.Linear(columns, a), torch.nn.Linear(columns if variant == "fitting" else p["columns_b"], b)
    return lambda: model.load_state_dict(saved.state_dict())


if __name__ == "__main__":
    main(globals())
