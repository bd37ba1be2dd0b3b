"""Functions of tvm-ffi as kernels of operators.

An operator whose results are made before its kernel runs calls the function directly. For an
operator that a program defines, results are made after the function of register_fake.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, List, Mapping, Sequence

from treadle import _C
from treadle._library.keys import device_of_key
from treadle._ops import overload_named
from treadle.utils.tvm_ffi import PREFIX, load_kernel, split_kernel


def register(
    library: Any, name: str, kernel: str, device: str, where: Sequence[Any], dtypes: Sequence[Any]
) -> None:
    """Registers a function as the kernel of an operator for a device, until `library` ends."""
    found = device_of_key(device)
    if found != "cpu":
        raise ValueError(f"impl_tvm_ffi: expected the device CPU, got '{device}'")
    function = load_kernel(*split_kernel(kernel))
    if _C._library_schema(name)[6]:
        library.impl(name, _making_results(name, function), "CPU")
        return
    set_kernel(name, function, list(dtypes), kernel, where)
    library._undo.append(lambda: _C._tvm_ffi_clear_kernel(name, found))


def set_kernel(
    name: str, function: Any, dtypes: List[Any], kernel: str, where: Sequence[Any]
) -> None:
    """Makes a function the kernel of an entry's operator, for dtypes; for all without any."""
    _C._tvm_ffi_set_kernel(name, "cpu", function, dtypes, kernel, *where)


def _making_results(name: str, function: Any) -> Callable[..., Any]:
    """A kernel that makes the results, of the shapes that the operator has on the meta device."""
    overload = overload_named(name)
    arguments = overload._schema.arguments

    def to_meta(value: Any) -> Any:
        if isinstance(value, _C.Tensor):
            return _C.empty_like(value, device="meta")
        return [to_meta(v) for v in value] if isinstance(value, (list, tuple)) else value

    def kernel(*args: Any, **kwargs: Any) -> Any:
        shown = overload(*map(to_meta, args), **{k: to_meta(v) for k, v in kwargs.items()})
        single = isinstance(shown, _C.Tensor)
        results = [_C.empty(t.shape, dtype=t.dtype) for t in ([shown] if single else shown)]
        more = [kwargs.get(a.name, a.default_value) for a in arguments[len(args) :]]
        function(*args, *more, out=results)
        return results[0] if single else tuple(results)

    return kernel


def register_entries(entries: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Registers the kernels of a library's entries whose `dispatch` names a function of tvm-ffi.
    The library of that is looked for in `folder`, beside the entries, and where the loader looks.
    """
    for entry in entries:
        for item in entry["dispatch"]:
            if not item["kernel"].startswith(PREFIX):
                continue
            path, function = split_kernel(item["kernel"])
            file = Path(entry["location"]["file"])
            for place in (folder / path, file.parent / path):
                if place.exists():
                    path = str(place.resolve())
                    break
            overload = f".{entry['overload']}" if entry["overload"] else ""
            table = entry["dtypes"] or {}
            names = table.get(item["key"], table.get("all", ()))
            set_kernel(
                f"{entry['namespace']}::{entry['name']}{overload}",
                load_kernel(path, function),
                [getattr(_C, n) for n in names],
                item["kernel"],
                (str(file), item["line"]),
            )
