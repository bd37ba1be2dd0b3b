"""opcheck: whether an operator does what was said of it when it was registered."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from treadle import _C, autograd
from treadle._ops import OpOverload, OpOverloadPacket
from treadle.testing import assert_close
from treadle.utils._pytree import tree_flatten, tree_map

Tensor = _C.Tensor


class OpCheckError(Exception):
    """Raised by opcheck where a test fails."""


class _Case:
    """One operator with arguments to call it with."""

    def __init__(
        self, op: OpOverload, args: Tuple[Any, ...], kwargs: Dict[str, Any], tolerance: dict
    ) -> None:
        self.op, self.args, self.kwargs, self.tolerance = op, args, kwargs, tolerance

    def copies(self, copy: Callable[[Tensor], Tensor]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The arguments, with a copy of each tensor."""
        return tree_map(
            lambda v: copy(v) if isinstance(v, Tensor) else v, (tuple(self.args), self.kwargs)
        )

    def named(self, args: Sequence[Any], kwargs: Dict[str, Any]) -> Dict[str, List[Tensor]]:
        """The tensors of each argument that was given."""
        names = [a.name for a in self.op._schema.arguments]
        given = {**dict(zip(names, args)), **kwargs}
        return {name: tensors_in(value) for name, value in given.items()}


def tensors_in(tree: Any) -> List[Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor)]


def _clone(t: Tensor) -> Tensor:
    return t.detach().clone().requires_grad_(t.requires_grad)


def _storage(t: Tensor) -> int:
    return t.untyped_storage().data_ptr() if t.numel() else 0


def test_schema(case: _Case) -> None:
    """Arguments change only where the schema says so, and results share memory only there."""
    schema = case.op._schema
    args, kwargs = case.copies(lambda t: t.detach().clone())
    before = case.named(
        *tree_map(lambda v: v.clone() if isinstance(v, Tensor) else v, (args, kwargs))
    )
    after = case.named(args, kwargs)
    results = case.op(*args, **kwargs)
    written = {a.name for a in schema.arguments if a.is_write}
    for name, tensors in after.items():
        same = all(map(_same_values, before[name], tensors))
        if not same and name not in written:
            raise OpCheckError(
                f"expected argument '{name}' to stay as it is, as the schema says, got it changed"
                f"\n  {schema}"
            )
    aliased = {a.name for a in schema.arguments if a.alias_info is not None}
    declared = any(r.alias_info is not None for r in schema.returns)
    for result in tensors_in(results):
        for name, tensors in after.items():
            shared = any(_storage(result) and _storage(t) == _storage(result) for t in tensors)
            if shared and not (declared and name in aliased):
                raise OpCheckError(
                    f"expected results in memory of their own, as the schema says, got one that "
                    f"shares the memory of argument '{name}'\n  {schema}"
                )


def _same_values(a: Tensor, b: Tensor) -> bool:
    try:
        assert_close(a, b, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


def test_autograd_registration(case: _Case) -> None:
    """An operator that is called with tensors that require grad says what its derivative is."""
    wanted = any(t.requires_grad for t in tensors_in((case.args, case.kwargs)))
    name = case.op._name
    if not wanted or not _C._library_schema(name)[-1] or _C._library_autograd(name):
        return
    args, kwargs = case.copies(_clone)
    results = tensors_in(case.op(*args, **kwargs))
    if any(r.requires_grad for r in results):
        raise OpCheckError(
            f"expected a derivative, as some arguments require grad, got none for {name}; "
            "register_autograd gives it one"
        )


def test_faketensor(case: _Case) -> None:
    """With meta tensors the results look as they do with real ones."""
    real_args, real_kwargs = case.copies(lambda t: t.detach().clone())
    fake_args, fake_kwargs = case.copies(lambda t: t.detach().to("meta"))
    real = tensors_in(case.op(*real_args, **real_kwargs))
    fake = tensors_in(case.op(*fake_args, **fake_kwargs))
    if len(real) != len(fake):
        raise OpCheckError(
            f"expected {len(real)} tensors from the kernel for meta tensors, got {len(fake)}"
        )
    for index, (a, b) in enumerate(zip(real, fake)):
        for what in ("shape", "dtype", "stride"):
            x, y = (getattr(t, what)() if what == "stride" else getattr(t, what) for t in (a, b))
            if x != y:
                raise OpCheckError(
                    f"expected result {index} for meta tensors to have {what} {x}, as the kernel's "
                    f"has, got {y}"
                )


def test_aot_dispatch_dynamic(case: _Case) -> None:
    """A compiled function that calls the operator gives the same results and gradients."""
    from treadle.compiler._compile import compile

    compiled = compile(case.op)
    outcomes = []
    for function in (case.op, compiled):
        args, kwargs = case.copies(_clone)
        results = tensors_in(function(*args, **kwargs))
        inputs = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
        ends = [r for r in results if r.requires_grad]
        gradients: Sequence[Any] = ()
        if inputs and ends:
            starts = [_C.ones_like(e) for e in ends]
            gradients = autograd.grad(ends, inputs, starts, allow_unused=True)
            for t, g in zip(inputs, gradients):
                if g is not None and g.shape != t.shape:
                    raise OpCheckError(
                        f"expected gradients of the shape of the arguments, got {tuple(g.shape)} "
                        f"for {tuple(t.shape)}"
                    )
        outcomes.append(([r.detach() for r in results], [g for g in gradients if g is not None]))
    assert_close(outcomes[1], outcomes[0], **case.tolerance)


_TESTS = {
    test.__name__: test
    for test in (
        test_schema,
        test_autograd_registration,
        test_faketensor,
        test_aot_dispatch_dynamic,
    )
}


def opcheck(
    op: Any,
    args: Tuple[Any, ...],
    kwargs: Optional[Dict[str, Any]] = None,
    *,
    test_utils: Union[str, Sequence[str]] = tuple(_TESTS),
    raise_exception: bool = True,
    atol: Optional[float] = None,
    rtol: Optional[float] = None,
) -> Dict[str, str]:
    """Test an operator with sample arguments, which it leaves as they are.

    test_schema: it writes to what its schema says, and nothing else; test_autograd_registration: it
    has a derivative where the arguments require grad; test_faketensor: its kernel for meta tensors
    gives results of the right shape, dtype and strides; test_aot_dispatch_dynamic: compiled, it
    gives the same results and gradients.

    The outcome of each: "SUCCESS", or the exception where `raise_exception` is False. Raises
    OpCheckError for the first that fails, and RuntimeError for a test that does not exist.
    """
    if isinstance(op, OpOverloadPacket):
        op = op.default if "default" in op.overloads() else getattr(op, op.overloads()[0])
    overload = getattr(op, "_opoverload", op)
    if not isinstance(overload, OpOverload):
        raise ValueError(
            f"opcheck: expected an OpOverload, a packet or a custom operator, got "
            f"{type(op).__name__}"
        )
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = [name for name in names if name not in _TESTS]
    if unknown:
        raise RuntimeError(
            f"opcheck: expected tests of {', '.join(_TESTS)}, got {', '.join(unknown)}"
        )
    tolerance = {} if atol is None and rtol is None else {"atol": atol, "rtol": rtol}
    outcomes: Dict[str, Any] = {}
    for name in names:
        try:
            _TESTS[name](_Case(overload, args, kwargs or {}, tolerance))
            outcomes[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck: {name} failed: {error}") from error
            outcomes[name] = error
    return outcomes
