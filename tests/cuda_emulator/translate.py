"""Writes CUDA C++ as C++ that the host's compiler takes, for the emulator.

    translate.py FOLDER FILE...

Each file goes to FOLDER: x.cu as x.cc, x.cuh under its own name. Launches become calls, memory of
a block whose size is given at the launch a pointer to it, and headers of what the host has not are
the emulator's own:

    fill<T><<<blocks, threads, 0, stream>>>(out, n);  ::treadle::cuda::emulator::launch(...)
    extern __shared__ double sums[];                  double* const sums = ...
    #include "aten/backend/cuda/kernels/scan.cuh"     #include ".../translated/scan.cuh"

Everything else of the language is macros and functions of device_code.h.
"""

# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import sys

_OPEN, _CLOSE = "<<<", ">>>"
_OWN, _NAMESPACE = "tests/cuda_emulator", "::treadle::cuda::emulator"
_HEADERS = {
    "aten/backend/cuda/kernels/device_number.cuh": f"{_OWN}/device_number.h",
    "aten/backend/cuda/kernels/tensor_cores.cuh": f"{_OWN}/tensor_cores.h",
    "aten/backend/cuda/device/instructions.h": f"{_OWN}/instructions.h",
    "cub/device/device_radix_sort.cuh": f"{_OWN}/radix_sort.h",
}
_DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?((?:unsigned )?\w+) (\w+)\[\];")


def _end_of_arguments(text: str, begin: int) -> int:
    """Behind the parenthesis that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
    raise ValueError(f"expected a closing parenthesis after {text[begin : begin + 40]!r}, got none")


def _start_of_name(text: str, end: int) -> int:
    """Where the kernel's name begins, of which template arguments may be a part."""
    at = end
    if text[at - 1] == ">":
        depth = 0
        while True:
            at -= 1
            depth += {">": 1, "<": -1}.get(text[at], 0)
            if depth == 0:
                break
    while text[at - 1].isalnum() or text[at - 1] in "_:":
        at -= 1
    return at


def _include(name: str) -> str:
    own = re.sub(r"^aten/.*/(\w+\.cuh)$", rf"{_OWN}/translated/\1", name)
    return f'#include "{_HEADERS.get(name, own)}"'


def translated(text: str) -> str:
    """The text as C++."""
    text = re.sub(
        r'#include ["<]((?:aten/(?:ops/\w+|backend)/cuda|cub)/[\w/.]+)[">]',
        lambda found: _include(found.group(1)),
        text,
    )
    text = _DYNAMIC.sub(rf"\1* const \2 = static_cast<\1*>({_NAMESPACE}::shared_memory());", text)
    behind = 0
    while True:
        opened = text.find(_OPEN, behind)
        if opened < 0:
            return text
        line = text[text.rfind("\n", 0, opened) + 1 : opened]
        if "//" in line:
            behind = opened + len(_OPEN)
            continue
        name_end = len(text[:opened].rstrip())
        name_begin = _start_of_name(text, name_end)
        closed = text.index(_CLOSE, opened)
        begin = text.index("(", closed)
        end = _end_of_arguments(text, begin)
        kernel = text[name_begin:name_end]
        geometry = text[opened + len(_OPEN) : closed]
        arguments = text[begin + 1 : end - 1]
        call = f'{_NAMESPACE}::launch("{kernel}", {_NAMESPACE}::geometry({geometry}), '
        call += f"[=](auto... a) {{ {kernel}(a...); }}"
        call += f", {arguments})" if arguments.strip() else ")"
        text = text[:name_begin] + call + text[end:]
        behind = name_begin + len(call)


if __name__ == "__main__":
    folder, *sources = map(pathlib.Path, sys.argv[1:])
    for source in sources:
        name = source.name if source.suffix == ".cuh" else source.stem + ".cc"
        text = f'#line 1 "{source}"\n' + translated(source.read_text())
        if source.suffix == ".cu":
            text = f'#include "{_OWN}/device_code.h"\n{text}'
        (folder / name).write_text(text)
