"""A torch op that gets dtypes which do not fit each other.

The check is on the host: no GPU is needed, except for tensors on two devices.
"""

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"op": "linear", "device": "cpu", "dtype_a": "float32", "dtype_b": "bfloat16", "size": 8}
# --- end of data ---


def without_kernel(torch, op, size, dtype, device):
    """The op whose kernel the log names, with operands of that dtype; None for an op that is none of these."""
    functional = torch.nn.functional

    def ones(*shape):
        return torch.ones(*shape).to(dtype).to(device)

    calls = {
        "softmax": lambda: torch.softmax(ones(size, size), -1),
        "log_softmax": lambda: torch.log_softmax(ones(size, size), -1),
        "matmul": lambda: ones(size, size) @ ones(size, size),
        "bmm": lambda: torch.bmm(ones(2, size, size), ones(2, size, size)),
        "mv": lambda: torch.mv(ones(size, size), ones(size)),
        "layer_norm": lambda: functional.layer_norm(ones(size, size), (size,)),
        "group_norm": lambda: functional.group_norm(ones(size, 4, size), 2),
        "batch_norm": lambda: functional.batch_norm(ones(size, 4, size), ones(4), ones(4)),
        "conv2d": lambda: functional.conv2d(ones(1, 2, size, size), ones(2, 2, 1, 1)),
        "shift": lambda: ones(size) << 1,
        "triu": lambda: torch.triu(ones(size, size)),
        "nll_loss": lambda: functional.nll_loss(ones(size, size), torch.zeros(size, dtype=torch.int64, device=device)),
        "cumsum": lambda: ones(size).cumsum(0),
        "topk": lambda: ones(size).topk(1),
        "gelu": lambda: functional.gelu(ones(size)),
        "silu": lambda: functional.silu(ones(size)),
        "glu": lambda: functional.glu(ones(2 * size)),
        "mse_loss": lambda: functional.mse_loss(ones(size), ones(size)),
        "nearest": lambda: functional.interpolate(ones(1, 1, size, size), scale_factor=2),
        "bilinear": lambda: functional.interpolate(ones(1, 1, size, size), scale_factor=2, mode="bilinear"),
        "bitwise_and": lambda: ones(size) & ones(size),
        "cholesky": lambda: torch.linalg.cholesky(ones(1, 1)),
        "svd": lambda: torch.linalg.svd(ones(size, size)),
        "cdist": lambda: torch.cdist(ones(size, size), ones(size, size)),
        "normal": lambda: ones(size).normal_(),
    }
    return calls.get(op)


def prepare(p, variant):
    """The call. "fitting" gives both tensors one dtype that every kernel takes."""
    torch = seeded(p)
    size = p["size"]
    first = getattr(torch, p["dtype_a"])
    second = first if variant == "fitting" else getattr(torch, p["dtype_b"])
    if p["device"] == "cuda" and not torch.cuda.is_available():
        raise CannotTry("the kernel is one of the GPU's, and no CUDA GPU is visible to torch")
    fitting = torch.int64 if p["op"] in ("shift", "bitwise_and") else torch.float32  # every kernel takes one of these
    if (call := without_kernel(torch, p["op"], size, fitting if variant == "fitting" else first, p["device"])) is not None:
        return call
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
