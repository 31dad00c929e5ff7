"""A collective whose tensors do not have the sizes that it wants."""

import datetime
import os

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"backend": "nccl", "form": "allgather", "numel": 1024, "world_size": 2}
# --- end of data ---


def prepare(p, variant):
    """The same call on every rank, one element short unless the sizes are to fit."""
    torch = seeded(p)
    world = int(os.environ["WORLD_SIZE"])
    cuda = p["backend"] == "nccl"
    if cuda and torch.cuda.device_count() < world:
        raise CannotTry(f"{world} ranks want a GPU each, {torch.cuda.device_count()} are visible")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    short = 1 if variant == "as-logged" else 0
    numel, dist = p["numel"] // world * world, torch.distributed
    x = torch.ones(numel, device=device)
    calls = {
        "allgather": lambda: dist.all_gather_into_tensor(torch.empty(numel * world - short, device=device), x),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(torch.empty(numel // world + short, device=device), x),
        "alltoall": lambda: dist.all_to_all_single(
            torch.empty_like(x), x, None, [numel // world] * (world - 1) + [numel // world - short]
        ),
        "dtype": lambda: dist.all_gather_into_tensor(
            torch.empty(numel * world, device=device, dtype=torch.float64 if short else torch.float32), x
        ),
    }

    def collective():
        dist.init_process_group(p["backend"], timeout=datetime.timedelta(seconds=30))
        calls[p["form"]]()
        if cuda:
            torch.cuda.synchronize()
        dist.destroy_process_group()

    return collective


if __name__ == "__main__":
    main(globals())
