"""Ranks whose collectives do not match.

Without the check NCCL hangs or mixes data up; TORCH_DISTRIBUTED_DEBUG=DETAIL compares op, shape and type before each call.
"""

import datetime
import os

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"backend": "nccl", "form": "op", "numel": 1024, "world_size": 2}
# --- end of data ---


def prepare(p, variant):
    """One collective; rank 1 calls another, or has one element more."""
    torch = seeded(p)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    cuda = p["backend"] == "nccl"
    if cuda and torch.cuda.device_count() < world:
        raise CannotTry(f"{world} ranks want a GPU each, {torch.cuda.device_count()} are visible")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    different = variant == "as-logged" and rank == 1

    def collective():
        torch.distributed.init_process_group(p["backend"], timeout=datetime.timedelta(seconds=30))
        x = torch.ones(p["numel"] + (1 if different and p["form"] == "shape" else 0), device=device)
        if different and p["form"] == "op":
            torch.distributed.broadcast(x, src=0)
        else:
            torch.distributed.all_reduce(x)
        if cuda:
            torch.cuda.synchronize()
        torch.distributed.destroy_process_group()

    return collective


if __name__ == "__main__":
    main(globals())
