"""Checking gradients: those of backward against differences of the function's own values.

    x = treadle.randn((3, 2), dtype=treadle.float64, requires_grad=True)
    gradcheck(lambda x: (x * x).sum(), (x,))    # True, or a GradcheckError with both Jacobians

Complex numbers are taken as pairs of real ones: then backward's convention (the gradient of a real
loss L is dL/d(real) + i dL/d(imaginary)) makes every case a real Jacobian.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import sys
import types
import warnings
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from treadle import _C, autograd
from treadle._C import Tensor
from treadle.autograd import forward_ad
from treadle.autograd.grad_mode import enable_grad

_Inputs = Union[Tensor, Sequence[Any]]


class GradcheckError(RuntimeError):
    """The gradients disagree, or could not be compared."""


def gradcheck(
    func: Callable,
    inputs: _Inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: Optional[bool] = None,
) -> bool:
    """Whether derivatives of `func` agree with central differences of step `eps`: those of backward
    with `check_backward_ad`, those of forward mode with `check_forward_ad`.

    All inputs that require grad are checked, against all outputs, element by element (in
    `fast_mode` too). Twice the same backward must give the same result up to nondet_tol. With
    `check_batched_grad` (or `check_batched_forward_grad`) a batch of gradients (or directions) must
    give what each of them gives. Returns True, or raises GradcheckError (False instead, if not
    raise_exception). AssertionError for options that leave nothing to check, and for a function
    whose outputs have another shape or dtype once an input is changed.

    A sparse input is checked by the values of its entries, `masked` or not: what is not an entry
    has no gradient. Sparse outputs are compared as strided ones.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for needed, given, what in (
        (True, check_forward_ad or check_backward_ad, "check_forward_ad or check_backward_ad"),
        (check_batched_grad, check_backward_ad, "check_backward_ad beside check_batched_grad"),
        (
            check_batched_forward_grad,
            check_forward_ad,
            "check_forward_ad beside check_batched_forward_grad",
        ),
    ):
        if needed and not given:
            raise AssertionError(f"gradcheck: expected {what} to be True, got False")
    func, inputs = _of_parts(func, inputs)
    try:
        _check_inputs(inputs)
        check = _Check(func, inputs, eps, atol, rtol, nondet_tol)
        check.run(check_backward_ad, check_forward_ad, check_grad_dtypes, check_undefined_grad)
        if check_batched_grad:
            check.batched_gradients()
        if check_batched_forward_grad:
            check.batched_directions()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs: _Inputs,
    grad_outputs: Optional[_Inputs] = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of backward itself, as a function of the inputs and of the gradients handed to
    it: of its backward with `check_rev_over_rev`, of its forward mode with `check_fwd_over_rev`."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    func, inputs = _of_parts(func, inputs)
    if grad_outputs is None:
        outputs = _differentiable(_as_tuple(func(*inputs)))
        grad_outputs = tuple(
            _random_like(output, gen_non_contig_grad_outputs) for output in outputs
        )
    else:
        grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(inputs)

    def backward(*args: Any) -> tuple:
        values, grads = args[:count], args[count:]
        # The numeric side calls this without recording; what is checked is a gradient all the same.
        with enable_grad():
            # A fresh node for each input: its gradient is then not that of whatever made the input.
            values = tuple(_fresh(value) if _is_checked(value) else value for value in values)
            outputs = _differentiable(_as_tuple(func(*values)))
            wanted = [value for value in values if _is_checked(value)]
            found = autograd.grad(outputs, wanted, grads, create_graph=True, allow_unused=True)
        return tuple(grad for grad in found if grad is not None)

    return gradcheck(
        backward,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _of_parts(func: Callable, inputs: tuple) -> tuple[Callable, tuple]:
    """The same function of strided tensors: an input of another layout is given by those of its
    parts that require grad, and outputs are made strided."""
    flat: list[Any] = []
    made: list[Optional[tuple]] = []
    for value in inputs:
        if not isinstance(value, Tensor) or value.layout == _C.strided:
            flat.append(value)
            made.append(None)
            continue
        parts, fields = (list(found.values()) for found in _C._layout_contents(value))
        places = [place for place, part in enumerate(parts) if part.requires_grad]
        flat += [parts[place].detach().clone().requires_grad_() for place in places]
        parts = [part.detach() for part in parts]
        made.append((value.layout, list(value.shape), parts, fields, places))

    def of_parts(*given: Any) -> Any:
        rest, args = iter(given), []
        for known in made:
            if known is None:
                args.append(next(rest))
                continue
            layout, size, parts, fields, places = known
            parts = list(parts)
            for place in places:
                parts[place] = next(rest)
            args.append(_C._layout_tensor(layout, size, parts, fields))
        results = func(*args)
        if isinstance(results, (tuple, list)):
            return tuple(map(_dense, results))
        return _dense(results)

    return of_parts, tuple(flat)


def _dense(value: Any) -> Any:
    return value.to_dense() if isinstance(value, Tensor) else value


def _fresh(value: Tensor) -> Tensor:
    return value.view(value.shape)


def _random_like(output: Tensor, strided: bool) -> Tensor:
    values = _C.randn(output.shape, dtype=output.dtype, device=output.device)
    if strided:
        # Every second element of a tensor twice as large.
        values = _C.stack((values, values), -1).select(-1, 0)
    values = values.detach()
    values.requires_grad = True
    return values


def _as_tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _forms(outputs: tuple) -> list[Optional[tuple]]:
    return [(tuple(o.shape), o.dtype) if isinstance(o, Tensor) else None for o in outputs]


def _is_checked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable(outputs: tuple) -> tuple:
    return tuple(
        output for output in outputs if isinstance(output, Tensor) and output.requires_grad
    )


def _check_inputs(inputs: tuple) -> None:
    checked = [value for value in inputs if _is_checked(value)]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for place, value in enumerate(inputs):
        if not _is_checked(value):
            continue
        if value.dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"Input #{place} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision.",
                stacklevel=3,
            )
        overlapping = any(
            size > 1 and stride == 0 for size, stride in zip(value.shape, value.stride())
        )
        if overlapping:
            raise RuntimeError(
                f"The {place}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )


def _as_reals(tensor: Optional[Tensor], like: Tensor) -> np.ndarray:
    """The elements as a vector of real numbers; zeros where there is no gradient."""
    if tensor is None:
        return np.zeros(like.numel() * (2 if like.dtype.is_complex else 1))
    wide = _C.complex128 if tensor.dtype.is_complex else _C.float64
    values = tensor.detach().contiguous().to(wide).numpy(force=True).reshape(-1)
    return (values.view(np.float64) if wide is _C.complex128 else values).copy()


def _elements(value: Tensor) -> tuple[np.ndarray, Callable[[], None]]:
    """The elements of an input to be changed, and what makes a change count."""
    if value.is_cpu and not value.is_conj() and not value.is_neg():
        return value.detach().numpy(), lambda: None  # the same memory
    elements = value.numpy(force=True)

    def write() -> None:
        value.detach().copy_(_C.from_numpy(elements))

    return elements, write


class _Check:
    """One function at one point."""

    def __init__(
        self, func: Callable, inputs: tuple, eps: float, atol: float, rtol: float, nondet_tol: float
    ) -> None:
        self.func = func
        self.inputs = inputs
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.nondet_tol = nondet_tol
        self.checked = [(place, value) for place, value in enumerate(inputs) if _is_checked(value)]

    def run(self, backward: bool, forward: bool, check_dtypes: bool, check_undefined: bool) -> None:
        """Compare; GradcheckError at the first disagreement."""
        outputs = _as_tuple(self.func(*self.inputs))
        self.forms = _forms(outputs)
        numbers = [number for number, output in enumerate(outputs) if _is_checked(output)]
        if not numbers:
            self._check_constant(outputs)
            return
        numeric = self._numeric(numbers)
        if backward:
            for column, number in enumerate(numbers):
                first = self._analytic(number, check_dtypes)
                second = self._analytic(number, check_dtypes)
                for row, (place, _) in enumerate(self.checked):
                    self._compare(numeric[row][column], first[row], number, place)
                    self._compare_runs(first[row], second[row], number, place)
            if check_undefined:
                self._check_partial(numbers)
        if forward:
            for row, (place, value) in enumerate(self.checked):
                found = self._forward(place, value, numbers)
                for column, number in enumerate(numbers):
                    self._compare(numeric[row][column], found[column], number, place, "forward")

    def _values(self, numbers: Sequence[int]) -> list[np.ndarray]:
        # Recorded as in any call, for functions that put hooks on what they make.
        outputs = _as_tuple(self.func(*self.inputs))
        forms = _forms(outputs)
        for number in numbers:
            for what, at_first, now in zip(("shape", "dtype"), self.forms[number], forms[number]):  # type: ignore[arg-type]
                if at_first != now:
                    raise AssertionError(
                        f"gradcheck: expected a function whose output {number} has {what} "
                        f"{at_first} when an input is changed a little, too, got {now}"
                    )
        return [_as_reals(outputs[number], outputs[number]) for number in numbers]

    def _numeric(self, numbers: Sequence[int]) -> list[list[np.ndarray]]:
        """For each input and output, the Jacobian by central differences: a row per element of the
        input."""
        result = []
        for _, value in self.checked:
            elements, write = _elements(value)
            parts = (elements.real, elements.imag) if value.dtype.is_complex else (elements,)
            rows: list[list[np.ndarray]] = [[] for _ in numbers]
            for index in np.ndindex(elements.shape):
                for part in parts:
                    for column, row in enumerate(self._difference(part, index, numbers, write)):
                        rows[column].append(row)
            result.append([np.array(part) for part in rows])
        return result

    def _difference(
        self, part: np.ndarray, index: tuple, numbers: Sequence[int], write: Callable[[], None]
    ) -> list[np.ndarray]:
        before = part[index].copy()
        try:
            part[index] = before + self.eps
            write()
            above = self._values(numbers)
            part[index] = before - self.eps
            write()
            below = self._values(numbers)
        finally:
            part[index] = before
            write()
        return [(up - down) / (2 * self.eps) for up, down in zip(above, below)]

    def _analytic(self, number: int, check_dtypes: bool) -> list[np.ndarray]:
        """For each input, the Jacobian by backward: a column per element of the output."""
        output = _as_tuple(self.func(*self.inputs))[number]
        wanted = [value for _, value in self.checked]
        columns: list[list[np.ndarray]] = [[] for _ in wanted]
        units = (1.0, 1.0j) if output.dtype.is_complex else (1.0,)
        for element in range(output.numel()):
            for unit in units:
                weights = _C.zeros((output.numel(),), dtype=output.dtype, device=output.device)
                weights[element] = unit
                grads = autograd.grad(
                    [output],
                    wanted,
                    [weights.view(output.shape)],
                    retain_graph=True,
                    allow_unused=True,
                )
                for row, (grad, (place, value)) in enumerate(zip(grads, self.checked)):
                    self._check_form(grad, value, place, check_dtypes)
                    columns[row].append(_as_reals(grad, value))
        height = [_as_reals(None, value).size for value in wanted]
        return [
            np.array(part).T if part else np.zeros((size, 0)) for part, size in zip(columns, height)
        ]

    def _check_form(
        self, grad: Optional[Tensor], value: Tensor, place: int, check_dtypes: bool
    ) -> None:
        if grad is None:
            return
        if tuple(grad.shape) != tuple(value.shape):
            raise GradcheckError(
                f"gradient for input {place} has size {tuple(grad.shape)}, expected "
                f"{tuple(value.shape)}"
            )
        if check_dtypes and grad.dtype != value.dtype:
            raise GradcheckError(
                f"gradient for input {place} has dtype {grad.dtype}, expected {value.dtype}"
            )

    def _tangents(
        self, place: int, value: Tensor, direction: Tensor, numbers: Sequence[int]
    ) -> list[Tensor]:
        """The derivatives of outputs along a direction of one input, in forward mode."""
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(value, direction)
            inputs = (*self.inputs[:place], dual, *self.inputs[place + 1 :])
            outputs = _as_tuple(self.func(*inputs))
            found = []
            for number in numbers:
                primal, tangent = forward_ad.unpack_dual(outputs[number])
                found.append(_C.zeros_like(primal) if tangent is None else tangent.detach())
        return found

    def _forward(self, place: int, value: Tensor, numbers: Sequence[int]) -> list[np.ndarray]:
        """For each output, the Jacobian by one input in forward mode: a row per element of it."""
        rows: list[list[np.ndarray]] = [[] for _ in numbers]
        for element in range(value.numel()):
            for unit in (1.0, 1.0j) if value.dtype.is_complex else (1.0,):
                direction = _C.zeros((value.numel(),), dtype=value.dtype, device=value.device)
                direction[element] = unit
                direction = direction.view(value.shape)
                found = self._tangents(place, value, direction, numbers)
                for row, tangent in zip(rows, found):
                    row.append(_as_reals(tangent, tangent))
        outputs = _as_tuple(self.func(*self.inputs)) if value.numel() == 0 else ()
        return [
            np.array(row) if row else np.zeros((0, _as_reals(None, outputs[number]).size))
            for row, number in zip(rows, numbers)
        ]

    def batched_gradients(self) -> None:
        """A batch of gradients must give what each of them gives."""
        wanted = [value for _, value in self.checked]
        for number, output in enumerate(_as_tuple(self.func(*self.inputs))):
            if not _is_checked(output):
                continue
            batch = _C.stack([_C.randn_like(output.detach()) for _ in range(2)])
            options = {"retain_graph": True, "allow_unused": True}
            together = autograd.grad([output], wanted, [batch], is_grads_batched=True, **options)
            for i in range(2):
                alone = autograd.grad([output], wanted, [batch[i]], **options)
                for (place, value), one, many in zip(self.checked, alone, together):
                    part = None if many is None else many[i]
                    self._compare_batch(
                        _as_reals(one, value), _as_reals(part, value), number, place
                    )

    def batched_directions(self) -> None:
        """A batch of directions must give what each of them gives."""
        from treadle.func import vmap

        outputs = _as_tuple(self.func(*self.inputs))
        numbers = [number for number, output in enumerate(outputs) if _is_checked(output)]
        for place, value in self.checked:
            batch = _C.stack([_C.randn_like(value.detach()) for _ in range(2)])

            def along(direction: Tensor, place: int = place, value: Tensor = value) -> tuple:
                return tuple(self._tangents(place, value, direction, numbers))

            together = vmap(along)(batch)
            for i in range(2):
                for number, one, many in zip(numbers, along(batch[i]), together):
                    self._compare_batch(_as_reals(one, one), _as_reals(many[i], one), number, place)

    def _compare_batch(self, alone: np.ndarray, batch: np.ndarray, output: int, place: int) -> None:
        if not np.allclose(alone, batch, rtol=self.rtol, atol=self.atol, equal_nan=True):
            raise GradcheckError(
                f"a batch gives other derivatives of output {output} with respect to input {place} "
                f"than its parts,\nalone:{alone}\nbatch:{batch}\n"
            )

    def _compare(
        self,
        numeric: np.ndarray,
        analytic: np.ndarray,
        output: int,
        place: int,
        mode: str = "backward",
    ) -> None:
        numeric = numeric.reshape(analytic.shape)
        if np.allclose(analytic, numeric, rtol=self.rtol, atol=self.atol, equal_nan=True):
            return
        by = "" if mode == "backward" else f" in {mode} mode"
        raise GradcheckError(
            f"Jacobian mismatch{by} for output {output} with respect to input {place},\n"
            f"numerical:{numeric}\nanalytical:{analytic}\n"
        )

    def _compare_runs(self, first: np.ndarray, second: np.ndarray, output: int, place: int) -> None:
        largest = np.nanmax(np.abs(first - second), initial=0.0)
        if largest > self.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                f"grad_output multiple times gives different values for output {output} and input "
                f"{place}: they differ by {largest}, nondet_tol is {self.nondet_tol}"
            )

    def _check_constant(self, outputs: tuple) -> None:
        """No output depends on the inputs, as autograd sees it: then the values must not move
        either."""
        numbers = [
            number
            for number, output in enumerate(outputs)
            if isinstance(output, Tensor)
            and (output.dtype.is_floating_point or output.dtype.is_complex)
        ]
        for row in self._numeric(numbers):
            for jacobian in row:
                if np.any(np.abs(jacobian) > self.atol):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        warnings.warn(
            "gradcheck: no output of the function requires grad, so that there is nothing to "
            "compare",
            stacklevel=4,
        )

    def _check_partial(self, numbers: Sequence[int]) -> None:
        """Backward must do with a gradient for one output only, or none, and treat absent ones as
        zeros."""
        wanted = [value for _, value in self.checked]
        self._check_without_gradients(numbers, wanted)
        if len(numbers) < 2:
            return
        for chosen in numbers:
            outputs = _as_tuple(self.func(*self.inputs))
            ones = [
                _C.ones_like(outputs[n].detach())
                if n == chosen
                else _C.zeros_like(outputs[n].detach())
                for n in numbers
            ]
            full = autograd.grad(
                [outputs[n] for n in numbers], wanted, ones, retain_graph=True, allow_unused=True
            )
            part = autograd.grad(
                [outputs[chosen]],
                wanted,
                [_C.ones_like(outputs[chosen].detach())],
                allow_unused=True,
            )
            for (place, value), one, other in zip(self.checked, full, part):
                if not np.allclose(_as_reals(one, value), _as_reals(other, value), equal_nan=True):
                    raise GradcheckError(
                        "Expected undefined gradients to be treated as zeros, but the gradient of "
                        f"input {place} differs when output {chosen} alone is given one"
                    )

    def _check_without_gradients(self, numbers: Sequence[int], wanted: list) -> None:
        outputs = _as_tuple(self.func(*self.inputs))
        ends = _as_tuple(_without_gradients()(*(outputs[n] for n in numbers)))
        ones = [_C.ones_like(end.detach()) for end in ends]
        found = autograd.grad(ends, wanted, ones, allow_unused=True)
        for (place, _), grad in zip(self.checked, found):
            if grad is not None and not bool((grad == 0).all()):
                raise GradcheckError(
                    "Expected undefined gradients to be treated as zeros, but the gradient of "
                    f"input {place} is another where no output is given one"
                )


@functools.lru_cache(maxsize=None)
def _without_gradients() -> Callable:
    class WithoutGradients(autograd.Function):
        """The tensors as they are, to which backward gives no gradient."""

        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> tuple:
            return tuple(tensor.view_as(tensor) for tensor in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple:
            return (None,) * len(grads)

    return WithoutGradients.apply


class _CallableModule(types.ModuleType):
    """This module, which stands in its package under the name of its function once a program has
    imported it."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
