"""An operation that waits for the device while a CUDA graph is captured.

A capture records launches and runs none of them, so nothing can be read back. Launch-blocking stays off: it is not for captures.
"""

from runtime import main, seeded

# --- data ---
PARAMETERS = {"form": "item", "size": 8}
# --- end of data ---


def prepare(p, variant):
    """A decode step in a graph, with one operation that needs the device's answer."""
    torch = seeded(p)
    x = torch.ones(p["size"], device="cuda")
    illegal = {
        "item": lambda: x.sum().item(),
        "nonzero": lambda: x.nonzero(),
        "cpu_copy": lambda: x.cpu(),
        "synchronize": lambda: torch.cuda.synchronize(),
        "legacy_stream": lambda: torch.cuda.default_stream().synchronize(),
    }[p["form"]]
    illegal()  # warm-up, as engines do before they capture

    def capture():
        if variant == "outside":
            illegal()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            if variant == "as-logged":
                illegal()
            result = x * 2
        graph.replay()
        return result

    def eager():
        illegal()
        return x * 2

    return eager if variant == "eager" else capture


if __name__ == "__main__":
    main(globals())
