"""A torch op that gets dtypes which do not fit each other.

The check is on the host: no GPU is needed, except for tensors on two devices.
"""

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"op": "linear", "dtype_a": "float32", "dtype_b": "bfloat16", "size": 8}
# --- end of data ---


def prepare(p, variant):
    """The call. "fitting" gives both tensors one dtype that every kernel takes."""
    torch = seeded(p)
    size = p["size"]
    first = getattr(torch, p["dtype_a"])
    second = first if variant == "fitting" else getattr(torch, p["dtype_b"])
    if p["op"] == "unimplemented":
        if first.is_floating_point:  # bit shifts have no kernel for floats, soft maxima none for integers
            table = torch.ones(size, size).to(torch.int64 if variant == "fitting" else first)
            return lambda: table << 1
        table = torch.ones(size, size).to(torch.float32 if variant == "fitting" else first)
        return lambda: torch.softmax(table, dim=-1)
    if p["op"] == "embedding":
        table = torch.randn(size, 4)
        index = torch.zeros(size, dtype=torch.int64 if variant == "fitting" else torch.float32)
        return lambda: torch.nn.functional.embedding(index, table)
    if p["op"] == "device":
        if not torch.cuda.is_available():
            raise CannotTry("two devices are needed, and no CUDA GPU is visible to torch")
        left, right = (
            torch.randn(size, size, device="cuda"),
            torch.randn(size, size, device="cuda" if variant == "fitting" else "cpu"),
        )
        return lambda: left + right.expand(size, size)
    left, right = torch.ones(size, size).to(first), torch.ones(size, size).to(second)
    return lambda: torch.nn.functional.linear(left, right)


if __name__ == "__main__":
    main(globals())
