"""A construct that torch.compile cannot take.

The front end's failures need neither GPU nor compiler: the eager backend shows them. Only the missing compiler goes through Inductor.
"""

import os

from runtime import main, seeded

# --- data ---
PARAMETERS = {"form": "graph_break", "size": 8}
# --- end of data ---


def prepare(p, variant):
    """The smallest function with the construct, compiled and called."""
    torch = seeded(p)
    x, form = torch.ones(p["size"]), p["form"]

    def branching(x):
        return x * 2 if x.sum() > 0 else x

    def breaking(x):
        torch._dynamo.graph_break()
        return x * 2

    def scaled(x, by):
        return x * by

    def rejecting(graph, inputs):
        raise NotImplementedError("this backend takes no graph")

    if variant == "eager":
        return lambda: (branching(x), scaled(x, 2))
    whole = variant == "as-logged"
    if form == "data_dependent":
        return lambda: torch.compile(branching, backend="eager", fullgraph=whole)(x)
    if form == "graph_break":
        return lambda: torch.compile(breaking, backend="eager", fullgraph=whole)(x)
    if form == "backend":
        return lambda: torch.compile(scaled, backend=rejecting if whole else "eager")(x, 2)
    if form == "no_compiler":
        if whole:
            os.environ["CXX"] = "/nonexistent/c++"
            from torch._inductor import config

            config.cpp.cxx = ("/nonexistent/c++",)
        return lambda: torch.compile(scaled, backend="inductor" if whole else "eager")(x, 2)

    def many_shapes():
        compiled = torch.compile(scaled, backend="eager", fullgraph=whole, dynamic=False)
        for size in range(1, torch._dynamo.config.recompile_limit + 3):
            compiled(torch.ones(size), 2)

    return many_shapes


if __name__ == "__main__":
    main(globals())
