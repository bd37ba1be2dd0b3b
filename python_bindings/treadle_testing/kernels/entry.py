"""The operator that a kernel computes, and what its results have to be.

An operator is Treadle's own ("gather"), one of a library ("my_ops::rotary", whose module is
imported first), or an entry of a YAML file that nothing is built of yet ("my_ops.yaml:rotary"); the
last has an expression, which is the reference.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import numpy as np

import treadle

from ..catalogue import Operator, operators
from ..check import outcome, tensors
from ..expression import evaluate
from .buffers import to_numpy


@dataclass(frozen=True)
class Expected:
    """One result: its dtype, its exact values (float64 or complex128, or exact integers), and what
    the operator itself gives in that dtype (None where there is none)."""

    dtype: str
    exact: np.ndarray
    own: Optional[np.ndarray]


def find(spec: str) -> Operator:
    """The operator of a specification, as above.

    ValueError where there is none, with what a YAML file's entry has wrong.
    """
    path, _, name = spec.rpartition(":")
    if path.endswith((".yaml", ".yml")):
        return _of_yaml(Path(path), name)
    library = "aten"
    if "::" in spec:
        library = spec.split("::")[0]
        importlib.import_module(library)
    for op in operators(library):
        if spec in (op.id, f"aten::{op.id}"):
            return op
    near = sorted(o.id for o in operators(library) if o.name == spec.split("::")[-1].split(".")[0])
    hint = f"; there are {', '.join(near)}" if near else ""
    raise ValueError(f"check-kernel: expected the name of an operator, got {spec!r}{hint}")


def _of_yaml(path: Path, name: str) -> Operator:
    from treadle.codegen.diagnostics import CodegenError
    from treadle.codegen.entries import write_model

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "model.json")
        try:
            write_model(path, None, path.stem, out)
        except CodegenError as error:
            raise ValueError(f"check-kernel: {error}") from None
        model = json.loads(out.read_text())
    for entry in model["operators"]:
        if name in (entry["id"], entry["name"]):
            if entry["kind"] != "pointwise":
                raise ValueError(
                    f"check-kernel: expected an entry with an expression, got {name} in {path} "
                    "without one; build its library, and name the operator"
                )
            return Operator(entry)
    raise ValueError(f"check-kernel: expected an entry {name} in {path}, got none")


def exists(op: Operator) -> bool:
    """Whether the operator can be called; an entry alone has only its expression."""
    return op.json["namespace"] == "aten" or op.library is not None


def widened(value: Any) -> Any:
    """Arguments in float64 and complex128, contiguous."""
    if isinstance(value, treadle.Tensor):
        value = value.detach().cpu()
        if value.is_complex():
            return value.to(treadle.complex128).contiguous()
        if value.is_floating_point():
            return value.to(treadle.float64).contiguous()
        return value.contiguous()
    if isinstance(value, (list, tuple)):
        return type(value)(widened(v) for v in value)
    return value


def packed(value: Any) -> Any:
    """Arguments with memory of their own, contiguous."""
    if isinstance(value, treadle.Tensor):
        return value.detach().cpu().clone(memory_format=treadle.contiguous_format)
    if isinstance(value, (list, tuple)):
        return type(value)(packed(v) for v in value)
    return value


def result_elements(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """The elements of the largest result, by the meta device; 0 where only values say it."""

    def to_meta(value: Any) -> Any:
        if isinstance(value, treadle.Tensor):
            return value.detach().to("meta")
        return [to_meta(v) for v in value] if isinstance(value, list) else value

    if not exists(op):
        return 0
    try:
        shown = op.function(*map(to_meta, args), **{k: to_meta(v) for k, v in kwargs.items()})
    except Exception:
        return 0
    return max((t.numel() for t in tensors(shown)), default=0)


def _numbers(value: Any) -> Any:
    return to_numpy(value) if isinstance(value, treadle.Tensor) else np.asarray(value)


def _dtype(value: Any) -> str:
    if isinstance(value, treadle.Tensor):
        return str(value.dtype).removeprefix("treadle.")
    return str(np.asarray(value).dtype)


def results(op: Operator, returned: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list:
    """The results of a call, in order: tensors and numbers."""
    judged = outcome(op, returned, args, kwargs)
    return [judged] if isinstance(judged, (bool, int, float, complex)) else tensors(judged)


def expected(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Expected]:
    """The expected result of a call. Raises what the operator raises for a call that it refuses."""
    if not exists(op):
        return _of_expression(op, args, kwargs)
    own_args, own_kwargs = packed(list(args)), {k: packed(v) for k, v in kwargs.items()}
    own = results(op, op.function(*own_args, **own_kwargs), own_args, own_kwargs)
    if any(_dtype(o).startswith(("float", "bfloat", "complex")) for o in own):
        wide_args = widened(packed(list(args)))
        wide_kwargs = {k: widened(packed(v)) for k, v in kwargs.items()}
        wide = results(op, op.function(*wide_args, **wide_kwargs), wide_args, wide_kwargs)
    else:
        wide = own
    # Another shape says that the operator reads the bytes of numbers, not the numbers.
    pairs = [(_numbers(o), _numbers(w)) for o, w in zip(own, wide)]
    exact = [w if w.shape == o.shape else o for o, w in pairs]
    return [Expected(_dtype(t), e, o) for t, e, (o, _) in zip(own, exact, pairs)]


def _of_expression(op: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Expected]:
    """By the entry's expression, in NumPy's float64. RuntimeError for shapes that do not
    broadcast, as of an operator."""
    given = {**dict(zip((a["name"] for a in op.args), args)), **kwargs}
    names = {a["name"]: a["default"]["value"] for a in op.args if a["default"] is not None}
    names.update({k: _numbers(v) if isinstance(v, treadle.Tensor) else v for k, v in given.items()})
    operands = [v for v in given.values() if isinstance(v, treadle.Tensor)]
    dtype = _result_type(op, operands)
    try:
        shape = np.broadcast_shapes(*(t.shape for t in operands))
    except ValueError as error:
        raise RuntimeError(f"{op.id}: {error}") from None
    name = str(dtype).removeprefix("treadle.")
    tree = op.json["pointwise"]["tree"]
    with np.errstate(all="ignore"):
        value = np.broadcast_to(np.asarray(evaluate(tree, names)), shape)
        # In the dtype itself, for where the expression overflows.
        own = None
        if name in ("float16", "float32", "complex64"):
            own = {k: _narrowed(v, name) for k, v in names.items()}
            own = np.broadcast_to(np.asarray(evaluate(tree, own)), shape).astype(value.dtype)
    return [Expected(name, value, own)]


def _narrowed(value: Any, dtype: str) -> Any:
    array = np.asarray(value)
    return array.astype(dtype) if array.ndim and array.dtype.kind in "fc" else value


def _result_type(op: Operator, operands: Sequence[treadle.Tensor]) -> treadle.dtype:
    rule = op.json["promote"]
    if rule == "bool":
        return treadle.bool
    dtype = operands[0].dtype
    for t in operands[1:]:
        dtype = treadle.promote_types(dtype, t.dtype)
    whole = not (dtype.is_floating_point or dtype.is_complex)
    return treadle.get_default_dtype() if rule == "float" and whole else dtype
