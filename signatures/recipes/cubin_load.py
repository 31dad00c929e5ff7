"""A prebuilt kernel binary handed to the driver.

The library's own file where its package is installed, else a small kernel compiled by nvcc for the same target: the driver looks
at the target only. Suffix a: that chip alone; suffix f: its family, never another major.
"""

import ctypes
import glob
import os
import tempfile

from compile_runtime import check_binary, find_tool, run_compiler
from runtime import CannotTry, main, seeded

# --- data ---
PARAMETERS = {"kernels": "Bmm_MxE4m3_MxE2m1MxE4m3_Fp32", "target": "sm_100f", "tile_n": 16}
# --- end of data ---


def library_binary(p):
    """A file of the flashinfer-cubin package that answers to the parameters, None where there is none."""
    import importlib.util

    found = importlib.util.find_spec("flashinfer_cubin")
    if found is None or not found.submodule_search_locations:
        return None
    suffix = p["target"].replace("_", "")
    files = []
    for folder in found.submodule_search_locations:
        files += glob.glob(os.path.join(folder, "**", f"{p['kernels']}*{suffix}*.cubin"), recursive=True)
    files.sort(key=lambda path: (f"x{p['tile_n']}x" not in os.path.basename(path), path))
    return files[0] if files else None


def compiled_binary(target):
    """(name, bytes) of a kernel that does nothing, compiled for a target."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernel.cu"), "w", encoding="utf-8") as file:
            file.write('extern "C" __global__ void kernel() {}\n')
        run_compiler(
            [find_tool("nvcc"), "-cubin", f"-arch={target}", "kernel.cu", "-o", "kernel.cubin"], folder, target
        )
        with open(os.path.join(folder, "kernel.cubin"), "rb") as file:
            return f"a kernel compiled for {target}", file.read()


def prepare(p, variant):
    """Loads the binary into the current context."""
    torch = seeded(p)
    torch.zeros(1, device="cuda")
    major, minor = torch.cuda.get_device_capability()
    path = library_binary(p) if variant == "as-logged" else None
    if path:
        with open(path, "rb") as file:
            name, image = os.path.basename(path), file.read()
    else:
        suffix = "a" if major >= 9 else ""
        name, image = compiled_binary(p["target"] if variant == "as-logged" else f"sm_{major}{minor}{suffix}")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CannotTry(f"no CUDA driver library: {error}") from error

    def load():
        module, code, text = ctypes.c_void_p(), ctypes.c_char_p(), ctypes.c_char_p()
        status = driver.cuModuleLoadData(ctypes.byref(module), image)
        if status:
            driver.cuGetErrorName(status, ctypes.byref(code))
            driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{(code.value or b'').decode()}: {(text.value or b'').decode()} loading {name}")
        driver.cuModuleUnload(module)

    return load


def compile_for(p, variant, target):
    """Whether a binary for the log's target loads on another GPU."""
    return check_binary(target if variant == "this-gpu" else p["target"], target)


if __name__ == "__main__":
    main(globals())
