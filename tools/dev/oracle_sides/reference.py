"""The side of PyTorch: makes samples, runs them, writes cases and results.

Reads a JSON object a line: {"database": "op", "name": ..., "dtype": ..., "file": ..., "most": ...},
and answers each with one, once the file is there. {"database": "list"} asks for all names.
A file holds pickles: (case, {part: result}), in order; what cannot be carried over is counted.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gzip
import json
import os
import pickle
import sys
import warnings
from typing import Any, Iterator

import torch
from parts import Case, parts_of
from plain import Name, NotCarried, encode, encode_function, failure
from torch.nn.modules.lazy import LazyModuleMixin
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.testing._internal.common_utils import freeze_rng_state

# Derivatives of both orders are taken in the wide dtypes; of the narrow ones they say little more.
_ORDERS = {torch.float64: 2, torch.complex128: 2, torch.float32: 1, torch.complex64: 1}
# They write beside an `out` of other strides, which ends the process sooner or later.
_WRITE_BESIDE = ("linalg.lu", "lu_unpack", "tril", "triu")


def _title(info: Any) -> str:
    variant = getattr(info, "variant_test_name", "")
    return f"{info.name}:{variant}" if variant else info.name


def _dtypes(info: Any) -> list[str]:
    found = info.supported_dtypes("cpu") if hasattr(info, "supported_dtypes") else info.dtypes
    return sorted(str(d).partition(".")[2] for d in found)


def listed() -> list[Any]:
    """[database, name, dtypes] of everything; operators on other devices are not among them."""
    names = [["op", _title(i), _dtypes(i)] for i in op_db if "jiterator" not in i.name]
    names += [["module", i.name, ["float32", "float64"]] for i in module_db]
    names += [["optimizer", i.optim_cls.__name__, ["float64"]] for i in optim_db]
    return names


def _path_of_method(function: Any) -> str:
    name = getattr(function, "__name__", "")
    return name if name and getattr(torch.Tensor, name, None) is function else ""


def _samples(info: Any, dtype: Any, most: int) -> Iterator[tuple[str, Any]]:
    graded = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    torch.manual_seed(0)
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=graded))
    except RuntimeError:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=False))
    # Evenly from all of them: those beside each other are alike.
    step = max(1, -(-len(samples) // most)) if most else 1
    yield from (("operator", s) for s in samples[::step])
    if info.error_inputs_func is not None and dtype == torch.float32:
        yield from (("error", e.sample_input) for e in info.error_inputs("cpu"))


def _operator_cases(name: str, dtype: Any, most: int) -> Iterator[Case | None]:
    info = next(i for i in op_db if _title(i) == name)
    function = encode_function(torch, info.op)
    orders = _ORDERS.get(dtype, 0) if info.supports_autograd else 0
    orders = min(orders, 2 if info.supports_gradgrad else 1)
    for index, (kind, sample) in enumerate(_samples(info, dtype, most)):
        try:
            args = encode(torch, (sample.input, *sample.args))
            kwargs = encode(torch, sample.kwargs)
        except NotCarried:
            yield None
            continue
        dtype_name = str(dtype).partition(".")[2]
        case = Case(name, dtype_name, index, kind, function, args, kwargs)
        if kind == "operator":
            case.method = _path_of_method(info.method_variant)
            inplace = "" if sample.broadcasts_input else _path_of_method(info.inplace_variant)
            case.inplace = inplace if isinstance(sample.input, torch.Tensor) else ""
            case.out = info.supports_out and not isinstance(sample.input, type(None))
            case.orders = orders
        yield case


def _class_name(made: type) -> Name:
    return Name(f"{made.__module__}.{made.__qualname__}")


def _module_cases(name: str, dtype: Any, most: int) -> Iterator[Case | None]:
    info = next(i for i in module_db if i.name == name)
    index = 0
    for training in (True, False):
        torch.manual_seed(0)
        try:
            given = info.module_inputs_func(
                info, "cpu", dtype, requires_grad=True, training=training
            )
        except (RuntimeError, NotImplementedError):
            return
        for one in given[:most] if most else given:
            if one.forward_input is None:
                continue
            index += 1
            try:
                made = one.constructor_input
                module = info.module_cls(*made.args, **made.kwargs).to(dtype)
                if isinstance(module, LazyModuleMixin):  # its parameters get their shapes
                    module(*one.forward_input.args, **one.forward_input.kwargs)
                state = {k: encode(torch, v.detach()) for k, v in module.state_dict().items()}
                # The dtype of what it makes is that of what it was given to make.
                wide = {"dtype": dtype} if "dtype" in made.kwargs else {}
                yield Case(
                    name,
                    str(dtype).partition(".")[2],
                    index,
                    "module",
                    _class_name(info.module_cls),
                    encode(torch, one.forward_input.args),
                    encode(torch, one.forward_input.kwargs),
                    more={
                        "constructor": (
                            encode(torch, made.args),
                            encode(torch, {**made.kwargs, **wide}),
                        ),
                        "training": training,
                        "state": state,
                    },
                )
            except NotCarried:
                yield None


def _optimizer_cases(name: str, dtype: Any, most: int) -> Iterator[Case | None]:
    info = next(i for i in optim_db if i.optim_cls.__name__ == name)
    torch.manual_seed(0)
    shapes = ((3, 4), (5,), ())
    for index, one in enumerate(info.optim_inputs_func("cpu")):
        parameters = [torch.randn(s, dtype=dtype).requires_grad_() for s in shapes]
        if name == "Muon":
            parameters = parameters[:1]
        try:
            kwargs = encode(torch, one.kwargs)
        except NotCarried:
            yield None
            continue
        function = _class_name(info.optim_cls)
        given = (encode(torch, parameters),)
        yield Case(name, str(dtype).partition(".")[2], index, "optimizer", function, given, kwargs)


def run(request: dict[str, Any]) -> dict[str, int]:
    """Writes the file that is asked for."""
    kinds = {"op": _operator_cases, "module": _module_cases, "optimizer": _optimizer_cases}
    dtype = getattr(torch, request["dtype"])
    counts = {"cases": 0, "not carried": 0}
    with gzip.open(request["file"] + ".part", "wb", 1) as file:
        try:
            cases = list(kinds[request["database"]](request["name"], dtype, request["most"]))
        except NotCarried:
            cases, counts["not carried"] = [], 1
        for case in cases:
            if case is None:
                counts["not carried"] += 1
                continue
            results = {}
            for name, part in parts_of(torch, case):
                if name == "out of other strides" and case.operator in _WRITE_BESIDE:
                    continue
                try:
                    with freeze_rng_state():
                        results[name] = encode(torch, part())
                except NotCarried:
                    continue
                except Exception as error:  # noqa: BLE001  that it fails is the result
                    results[name] = failure(error)
            counts["cases"] += 1
            pickle.dump((case, results), file)
    os.replace(request["file"] + ".part", request["file"])
    return counts


def main() -> None:
    warnings.simplefilter("ignore")
    output, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: Any = listed() if request["database"] == "list" else run(request)
        except Exception as error:  # noqa: BLE001  the database itself may fail
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps({"done": answer}), file=output, flush=True)


if __name__ == "__main__":
    main()
