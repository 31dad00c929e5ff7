"""How the code got there, in words a person uses. Public verbs: `build`, `owner_of`, `owners_of`, `component_of`, `phase_of`, `kernel_of`,
`of_client`, `packages_in`, `runs_a_model`.

In: frames outermost first. Out: a `CallPath` of few steps, each with its owner; the algorithm is signatures/frames/README.md.
"""

from forensics.callpath.kernel import kernel_of
from forensics.callpath.owners import of_client, owner_of, packages_in
from forensics.callpath.stages import component_of, owners_of, phase_of, runs_a_model
from forensics.callpath.steps import build, is_plumbing

__all__ = [
    "build", "component_of", "is_plumbing", "kernel_of", "of_client", "owner_of", "owners_of", "packages_in", "phase_of", "runs_a_model",
]  # fmt: skip
