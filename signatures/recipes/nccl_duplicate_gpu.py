"""Two ranks on one GPU."""

import datetime
import os

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"world_size": 2}
# --- end of data ---


def prepare(p, variant):
    """One all-reduce; as logged every rank stays on GPU 0."""
    torch = seeded(p)
    local = int(os.environ["LOCAL_RANK"])
    if variant == "one-each" and torch.cuda.device_count() < p["world_size"]:
        raise CannotTry(f"{p['world_size']} ranks want a GPU each, {torch.cuda.device_count()} are visible")
    device = torch.device("cuda", local if variant == "one-each" else 0)
    torch.cuda.set_device(device)

    def collective():
        torch.distributed.init_process_group("nccl", timeout=datetime.timedelta(seconds=30))
        x = torch.ones(1024, device=device)
        torch.distributed.all_reduce(x)
        torch.cuda.synchronize()
        torch.distributed.destroy_process_group()

    return collective


if __name__ == "__main__":
    main(globals())
