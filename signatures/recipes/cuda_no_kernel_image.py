"""An extension that holds no code for this GPU.

Built on the spot for one target only, without PTX that the driver could compile: what a wheel without this GPU's code does.
"""

import os

from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"built_for": "10.0a"}
# --- end of data ---

SOURCE = """
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
__global__ void double_values(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
void run(torch::Tensor x) {
  double_values<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""


def prepare(p, variant):
    """Builds the extension and launches its kernel."""
    torch = seeded(p)
    from torch.utils.cpp_extension import load_inline

    major, minor = torch.cuda.get_device_capability()
    if variant == "this-gpu":
        target = f"{major}.{minor}"
    else:
        target = p["built_for"]
        if target.rstrip("a") == f"{major}.{minor}" or (
            not target.endswith("a") and target.split(".")[0] == str(major)
        ):
            raise CannotTry(f"code for {target} does run on this GPU; --set built_for names another")
    os.environ["TORCH_CUDA_ARCH_LIST"] = target
    name = "repro_" + target.replace(".", "_")
    try:
        module = load_inline(name, cpp_sources="void run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"])
    except OSError as error:
        raise CannotTry(f"the extension cannot be built here: {error}") from error
    x = torch.ones(1024, device="cuda")
    return lambda: module.run(x)


if __name__ == "__main__":
    main(globals())
