"""Compiles a kernel for a GPU that is not here. In: a Triton function, CUDA or PTX text and a target; out: what it takes. Sample:

    compile_triton(kernel, {"x": "*fp32"}, {"BLOCK": 128}, "sm_120") -> {"shared_bytes": 655360, "limit_bytes": 101376, …}

Copied into the scripts whose op has such a form. `SHARED_MEMORY_LIMITS` is filled from the GPU table when the script is written.
"""

import os
import re
import shutil
import subprocess
import tempfile

from runtime import CannotTry, Refused, need

# --- limits ---
SHARED_MEMORY_LIMITS = {"sm_90": 232448, "sm_120": 101376}
# --- end of limits ---


def sm_number(target):
    """120 for "sm_120", "sm_120a", "sm_120f"."""
    matched = re.fullmatch(r"sm_(\d{2,3})[af]?", target)
    if not matched:
        raise CannotTry(f"{target!r} is no target: sm_90, sm_120a…")
    return int(matched[1])


def check_shared_memory(shared_bytes, target):
    """Triton and nvcc compile what a GPU cannot hold and it fails at launch: so compare with the GPU's own limit here."""
    limit = SHARED_MEMORY_LIMITS.get(f"sm_{sm_number(target)}")
    details = {"target": target, "shared_bytes": shared_bytes, "limit_bytes": limit}
    if limit is not None and shared_bytes > limit:
        raise Refused(
            "shared memory",
            f"out of resource: shared memory, Required: {shared_bytes}, Hardware limit: {limit}",
            details,
        )
    return details


def check_binary(built, target):
    """Whether code prebuilt for one target loads on another GPU: NVIDIA's rules for plain, a and f targets."""
    base, number = sm_number(built), sm_number(target)
    if built.endswith("a"):
        fits, rule = number == base, "that chip alone"
    else:
        fits = number // 10 == base // 10 and number >= base
        rule = f"{base // 10}.x from {base // 10}.{base % 10} up"
    if not fits:
        raise Refused("target", f"a binary for {built} loads on {rule}; {target} is {number // 10}.{number % 10}")
    return {"target": target, "built_for": built, "says": f"the driver loads a binary for {built} on {target}"}


def compile_triton(function, signature, constants, target, **options):
    """Compiles a @triton.jit function. signature: argument -> "*fp16", "i32"…; options: num_warps, num_stages."""
    triton = need("triton")
    from triton.backends.compiler import GPUTarget

    number = sm_number(target)
    types = {name: signature.get(name, "constexpr") for name in function.arg_names}
    places = {name: (index,) for index, name in enumerate(function.arg_names)}
    # what a launch with aligned tensors and round sizes would tell the compiler; without it loads are not pipelined
    aligned = {places[name]: [["tt.divisibility", 16]] for name in signature}
    constants = {places[name]: value for name, value in constants.items()}
    source = triton.compiler.ASTSource(fn=function, signature=types, constexprs=constants, attrs=aligned)
    try:
        compiled = triton.compile(source, target=GPUTarget("cuda", number, 32), options=options)
    except Exception as error:
        text = str(error)
        if re.search(r"not supported on \.target|does not support \.target|ptxas", text, re.IGNORECASE):
            raise Refused("instruction", text) from error
        raise Refused("compiler", f"{type(error).__name__}: {text}") from error
    return check_shared_memory(int(compiled.metadata.shared), target) | {"by": f"triton {triton.__version__}"}


def find_tool(name):
    """nvcc or ptxas: $CUDA_HOME, the search path, /usr/local/cuda, Triton's own copy."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = shutil.which(name) or shutil.which(os.path.join(home, "bin", name))
    if not found and name == "ptxas":
        try:
            import triton

            found = shutil.which(os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "ptxas"))
        except ImportError:
            found = None
    if not found:
        raise CannotTry(f"{name} is not installed")
    return found


def run_compiler(command, folder, target):
    """Runs a compiler and turns what it says into Refused where the target is the reason."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False, errors="replace"
    )
    text = (done.stderr + done.stdout).strip()
    if done.returncode:
        if re.search(r"is not defined for option|Unsupported gpu architecture", text):
            raise CannotTry(f"this {os.path.basename(command[0])} does not know {target}: {text[:300]}")
        kind = (
            "instruction"
            if re.search(r"not supported on \.target|requires \.?(target )?sm_|does not support \.target", text)
            else "compiler"
        )
        raise Refused(kind, text)
    shared = sum(int(size) for size in re.findall(r"(\d+) bytes smem", text))
    return check_shared_memory(shared, target) | {"by": os.path.basename(command[0])}


def compile_cuda(source, target, *flags):
    """Compiles CUDA C++ text to a cubin with nvcc. Static shared memory only: what a launch asks for is checked by the caller."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernel.cu"), "w", encoding="utf-8") as file:
            file.write(source)
        return run_compiler(
            [find_tool("nvcc"), "-cubin", f"-arch={target}", "-Xptxas=-v", *flags, "kernel.cu", "-o", "kernel.cubin"],
            folder,
            target,
        )


def compile_ptx(source, target):
    """Assembles PTX text with ptxas."""
    sm_number(target)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernel.ptx"), "w", encoding="utf-8") as file:
            file.write(source)
        return run_compiler(
            [find_tool("ptxas"), f"-arch={target}", "-v", "kernel.ptx", "-o", "kernel.cubin"], folder, target
        )
