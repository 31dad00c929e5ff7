"""A DataLoader worker that dies.

The parent only learns that its worker is gone; what ended the worker is in the kernel's log (OOM killer), in /dev/shm
(Bus error) or in the dataset. The worker here ends itself in the way that the log shows.
"""

import os
import signal
import time

from runtime import main, seeded

# --- data ---
PARAMETERS = {"death": "SIGKILL", "workers": 2, "batch": 4}
# --- end of data ---


class Dataset:
    """Items 0 to 63; item 5 ends the worker that loads it. A worker is known by its pid: the main process is spared the signal."""

    def __init__(self, death, main_pid):
        self.death, self.main_pid = death, main_pid

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 5 and self.death is not None:
            if self.death == "raise" or os.getpid() == self.main_pid:
                raise ValueError(f"item {index} cannot be read")
            # torch registers its workers after it has started all of them; of one that ends before, nothing but its absence is told
            time.sleep(3)
            if self.death == "exit":
                os._exit(1)
            os.kill(os.getpid(), getattr(signal, self.death))
        return float(index)


def prepare(p, variant):
    """One pass over the dataset."""
    torch = seeded(p)
    dataset = Dataset(None if variant == "healthy" else p["death"], os.getpid())
    workers = 0 if variant == "no-workers" else p["workers"]

    def read_all():
        for _ in torch.utils.data.DataLoader(dataset, num_workers=workers, batch_size=p["batch"]):
            pass

    return read_all


if __name__ == "__main__":
    main(globals())
