"""Which GPUs a binary holds code for. In: .so, .cubin, .fatbin, executables, wheels, folders; out: `BinaryCode` a file. Sample:

    scan(["site-packages/sgl_kernel"])[0] -> BinaryCode(path="…/common_ops.abi3.so", code=(Code("sm_90a", "cubin", 72), …))
    scan([...])[0].can_run("sm_121") -> False

A host library keeps device code in its section .nv_fatbin as containers (magic 0xBA55ED50) of entries: kind (1 PTX, 2 cubin), SM number
and flags, of which 0x100000 means an `a` target and 0x200000 an `f` one (CUDA 12.8 to 13.0; seen by building for each). A cubin by
itself is an ELF file of machine 190: the SM stands in e_flags (bits 8-15, or 0-7 before ABI 8), its suffix in the compiler's own note,
in .nv.compat, or in the file's name. AMD code objects are ELF files of machine 224, in host libraries bundled in .hip_fatbin.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING

from forensics.errors import ForensicsError
from forensics.ingest.pattern import Pattern
from forensics.knowledge.architectures import can_run, parse_target
from forensics.model.record import record

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_MAGIC = struct.pack("<I", 0xBA55ED50)
_KINDS = {1: "ptx", 2: "cubin"}
_ARCH_FLAG, _FAMILY_FLAG = 0x100000, 0x200000
_EM_CUDA, _EM_AMDGPU = 190, 224
_MAX_ENTRIES = 2_000_000
_MAX_FILES = 20_000
_SUFFIXES = (".cubin", ".fatbin", ".hsaco", ".co")
_SHARED = Pattern(r"\.so(?:\.\d+)*\Z")
_NAMED = Pattern(r"sm_?(\d{2,3}[af]?)(?=[_.\-K]|$)", re.IGNORECASE)
_COMMAND = Pattern(rb"-arch[= ]?(?:sm_|compute_)(\d{2,3}[af]?)")
_BUNDLED = Pattern(rb"amdgcn-amd-amdhsa--(gfx[0-9a-f]{3,4})")
#: LLVM's EF_AMDGPU_MACH values of the chips in use
_AMD_MACH = {
    0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950", 0x33: "gfx1010", 0x36: "gfx1030", 0x41: "gfx1100",
    0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150", 0x4A: "gfx1151", 0x48: "gfx1200", 0x4E: "gfx1201",
}  # fmt: skip


@record
class Code:
    """Code for one target. target: "sm_100f", "compute_90a", "gfx942"; kind: cubin, ptx, gfx; count: how many pieces."""

    target: str
    kind: str
    count: int


@record
class BinaryCode:
    """Device code of one file. path: as given; inside a wheel "wheel.whl!member.so"."""

    path: str
    code: tuple[Code, ...]

    def can_run(self, sm: str) -> bool:
        """True where some of the code loads on the GPU (PTX needs a driver that can compile it)."""
        return any(can_run(code.target, sm) for code in self.code)

    def partly(self, sm: str) -> tuple[str, ...]:
        """Targets of the code that loads on the GPU."""
        return tuple(code.target for code in self.code if can_run(code.target, sm))


def scan(paths: Iterable[str], damaged: list[str] | None = None) -> list[BinaryCode]:
    """Device code of files, wheels and folders; files without any are left out. damaged: gets the names of those that are cut off or
    broken, so that nothing can be said of them. Raises ForensicsError where a path cannot be read."""
    found = []
    for path in paths:
        for name, file in _files(path):
            try:
                if code := _of_file(file, name):
                    found.append(BinaryCode(name, code))
            except _Damaged:
                if damaged is not None:
                    damaged.append(name)
    return found


class _Damaged(Exception):
    """An ELF file whose parts are not where it says."""


def _files(path: str) -> Iterator[tuple[str, str]]:
    """(name to show, file to read) of everything under a path that may hold device code."""
    if os.path.isdir(path):
        count = 0
        for top, folders, files in os.walk(path):
            folders.sort()
            for file in sorted(files):
                if file.endswith(_SUFFIXES) or _SHARED.search(file):
                    count += 1
                    if count > _MAX_FILES:
                        return
                    place = os.path.join(top, file)
                    yield place, place
    elif not os.path.exists(path):
        raise ForensicsError(
            f"cannot read {path}",
            why="there is no such file or folder",
            where=path,
            help="name a library, a cubin, a wheel or a folder",
        )
    elif zipfile.is_zipfile(path) or path.endswith(".whl"):
        yield from _members(path)
    else:
        yield path, path


def _members(wheel: str) -> Iterator[tuple[str, str]]:
    """Members of a wheel, unpacked one at a time: they can be larger than memory should hold."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist()[:_MAX_FILES]:
                if not (member.filename.endswith(_SUFFIXES) or _SHARED.search(member.filename)):
                    continue
                with NamedTemporaryFile(suffix=os.path.basename(member.filename)) as copy:
                    with archive.open(member) as source:
                        while block := source.read(1 << 20):
                            copy.write(block)
                    copy.flush()
                    yield f"{wheel}!{member.filename}", copy.name
    except (zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise ForensicsError(
            f"cannot read {wheel}", why=str(error), where=wheel, help="is it a whole wheel?"
        ) from error


def _of_file(path: str, name: str) -> tuple[Code, ...]:
    """The code of one file, sorted by target; empty for files of other kinds."""
    targets: Counter[tuple[str, str]] = Counter()
    try:
        with open(path, "rb") as file:
            head = file.read(4)
            if head == _MAGIC:
                targets.update(_mapped(file, 0, None))
            elif head == b"\x7fELF":
                targets.update(_of_elf(file, name))
    except OSError as error:
        raise ForensicsError(f"cannot read {name}", why=error.strerror or str(error), where=name) from error
    rows = [Code(target, kind, count) for (target, kind), count in targets.items()]
    return tuple(sorted(rows, key=lambda code: (code.kind, _order(code.target))))


def _order(target: str) -> tuple[int, str]:
    parsed = parse_target(target)
    return (parsed.number if parsed else 0, target)


def _of_elf(file: IO[bytes], name: str) -> list[tuple[str, str]]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(file)
        machine = elf["e_machine"]
        if machine in (_EM_CUDA, "EM_CUDA"):
            return [(_of_cubin(elf, name), "cubin")]
        if machine in (_EM_AMDGPU, "EM_AMDGPU"):
            gfx = _AMD_MACH.get(elf["e_flags"] & 0xFF)
            return [(gfx, "gfx")] if gfx else []
        found: list[tuple[str, str]] = []
        for section in elf.iter_sections():
            if section["sh_type"] == "SHT_NOBITS" or not section["sh_size"]:
                continue
            if section.name in (".nv_fatbin", "__nv_relfatbin"):
                found += _mapped(file, section["sh_offset"], section["sh_size"])
            elif section.name == ".hip_fatbin":
                found += _bundles(file, section["sh_offset"], section["sh_size"])
        return found
    except (ELFError, struct.error, ValueError, KeyError, OverflowError) as error:
        raise _Damaged(name) from error


def _of_cubin(elf: ELFFile, name: str) -> str:
    """The target of a cubin."""
    flags = elf["e_flags"]
    new = elf["e_ident"]["EI_ABIVERSION"] >= 8
    number = (flags >> 8) & 0xFF if new else flags & 0xFF
    note = elf.get_section_by_name(".note.nv.tkinfo")
    if note is not None and (said := _COMMAND.search(note.data())):
        return "sm_" + said[1].decode()
    if (said_in := _NAMED.search(os.path.basename(name))) and said_in[1].rstrip("af") == str(number):
        return "sm_" + said_in[1].lower()
    compat = elf.get_section_by_name(".nv.compat")
    specific = flags & (0x8 if new else 0x800) or (compat is not None and compat.data()[:3] == b"\x02\x09\x01")
    return f"sm_{number}{'a' if specific else ''}"


def _mapped(file: IO[bytes], offset: int, size: int | None) -> list[tuple[str, str]]:
    """Entries of the containers between two offsets of a file."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return list(_entries(data, offset, len(data) if size is None else min(len(data), offset + size)))


def _entries(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[str, str]]:
    count = 0
    while (at := data.find(_MAGIC, at, end)) >= 0 and at + _CONTAINER.size <= end:
        _, version, header, size = _CONTAINER.unpack_from(data, at)
        if version != 1 or not 16 <= header <= 64:
            at += 4
            continue
        inside, last = at + header, min(end, at + header + size)
        while inside + _ENTRY.size <= last and count < _MAX_ENTRIES:
            kind, _, head, length, _, _, _, _, number, _, _, flags = _ENTRY.unpack_from(data, inside)
            if head < _ENTRY.size or head > 4_096:
                break
            count += 1
            if kind in _KINDS and 20 <= number < 200:
                suffix = "a" if flags & _ARCH_FLAG else "f" if flags & _FAMILY_FLAG else ""
                yield f"{'compute' if kind == 1 else 'sm'}_{number}{suffix}", _KINDS[kind]
            inside += head + length
        at = max(at + 4, last)


def _bundles(file: IO[bytes], offset: int, size: int) -> list[tuple[str, str]]:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = _BUNDLED.finditer(data, offset, min(len(data), offset + size))
        return [(match[1].decode(), "gfx") for match in found]
