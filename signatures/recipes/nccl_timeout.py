"""A collective that one rank does not enter.

torchrun starts the ranks. The first collective works, so that the communicator stands; then one rank stays away. NVLink multicast
stays off if it is off in the environment.
"""

import datetime
import os
import time

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"backend": "nccl", "op": "allreduce", "numel": 1024, "world_size": 2, "missing_rank": 1, "limit_s": 10}
# --- end of data ---


def call_collective(torch, op, x, world):
    """One collective on x."""
    dist = torch.distributed
    if op == "allgather":
        dist.all_gather_into_tensor(torch.empty(x.numel() * world, device=x.device), x)
    elif op == "reduce_scatter":
        dist.reduce_scatter_tensor(torch.empty(x.numel(), device=x.device), x.repeat(world))
    elif op == "broadcast":
        dist.broadcast(x, src=0)
    elif op == "alltoall":
        dist.all_to_all_single(torch.empty_like(x), x)
    elif op == "barrier":
        dist.barrier()
    else:
        dist.all_reduce(x)


def prepare(p, variant):
    """Two rounds; in the second the missing rank sleeps for longer than the limit."""
    torch = seeded(p)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    cuda = p["backend"] == "nccl"
    if cuda and torch.cuda.device_count() < world:
        raise CannotTry(f"{world} ranks want a GPU each, {torch.cuda.device_count()} are visible")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    numel = -(-p["numel"] // world) * world
    limit = datetime.timedelta(seconds=p["limit_s"])

    def rounds():
        torch.distributed.init_process_group(p["backend"], timeout=limit)
        x = torch.ones(numel, device=device)
        call_collective(torch, p["op"], x, world)
        if cuda:
            torch.cuda.synchronize()
        if variant == "as-logged" and rank == min(p["missing_rank"], world - 1):
            print(f"rank {rank} stays away", flush=True)
            time.sleep(p["limit_s"] + 60)
        else:
            call_collective(torch, p["op"], x, world)
            if cuda:
                torch.cuda.synchronize()
        torch.distributed.destroy_process_group()

    return rounds


if __name__ == "__main__":
    main(globals())
