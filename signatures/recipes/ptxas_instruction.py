"""An instruction that the target does not have, assembled by ptxas.

No GPU is needed: the assembler knows what each target has. "sm_100" without its suffix lacks what "sm_100a" has.
"""

from compile_runtime import compile_ptx
from runtime import Refused, main

# --- data ---
PARAMETERS = {"instruction": "tcgen05", "target": "sm_120a"}
# --- end of data ---

BLOCK_SCALED_PRODUCT = """.reg .f32 d<4>; .reg .b32 a<4>; .reg .b32 b<2>; .reg .b32 s<2>;
  mov.b32 s0, 0; mov.b32 s1, 0; mov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;
  mov.b32 a0, 0; mov.b32 a1, 0; mov.b32 a2, 0; mov.b32 a3, 0; mov.b32 b0, 0; mov.b32 b1, 0;
  mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0
    {d0,d1,d2,d3}, {a0,a1,a2,a3}, {b0,b1}, {d0,d1,d2,d3}, s0, {0,0}, s1, {0,0};"""

MULTICAST_COPY = """.shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 barrier; .reg .b64 source; .reg .b16 mask;
  mov.b64 source, 0; mov.b16 mask, 1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [buffer], [source], 128, [barrier], mask;"""

TENSOR_MEMORY = """.shared .align 4 .b32 slot;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"""

#: instruction -> (a target that has it, PTX version, body)
FORMS = {
    "tcgen05": ("sm_100a", "8.6", TENSOR_MEMORY),
    "wgmma": ("sm_90a", "8.0", "wgmma.fence.sync.aligned;"),
    "mma_block_scale": ("sm_120a", "8.7", BLOCK_SCALED_PRODUCT),
    "cluster_multicast": ("sm_90", "8.0", MULTICAST_COPY),
}


def source(form, target):
    """A whole PTX module with the instruction in it."""
    _, version, body = FORMS[form]
    newer = {"sm_103": "8.8", "sm_110": "9.0", "sm_120": "8.7", "sm_121": "8.8", "sm_100": "8.6"}.get(
        target.rstrip("af"), "8.0"
    )
    return f".version {max(version, newer)}\n.target {target}\n.address_size 64\n.visible .entry kernel() {{\n  {body}\n  ret;\n}}\n"


def compile_for(p, variant, target):
    """What ptxas says of it for one target."""
    chosen = FORMS[p["instruction"]][0] if variant == "right-target" else target
    return compile_ptx(source(p["instruction"], chosen), chosen)


def prepare(p, variant):
    """Assembles it for the log's target."""

    def assemble():
        try:
            compile_for(p, variant, p["target"])
        except Refused as error:
            raise RuntimeError(str(error)) from None

    return assemble


if __name__ == "__main__":
    main(globals())
