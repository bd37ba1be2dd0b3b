"""Calls of operators for the benchmark of throughput: the samples of the tests, made larger.

    plan = plans(by_id()["gather"], [100_000], samples=1)[0]   # about so many elements
    call = made(plan, treadle)                                 # or torch, for the same values
    call()

An operator of the model has a kernel of its own where it is pointwise, a reduction, or has a kernel
for the CPU. Kernels that no sample calls directly (parts of other operators, gradients) are
measured through an operator that reaches them: see fronts.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

import numpy as np

import treadle
from treadle_testing.cases import has_samples, registered
from treadle_testing.catalogue import Operator, by_id, operators
from treadle_testing.expression import pointwise_samples
from treadle_testing.sample import Maker, Sample, map_arrays, to_tensor

# How many samples of an operator are tried, and how long a call may take to be made larger yet.
TRIED, SLOW_SECONDS = 12, 0.5
MOST_ELEMENTS = 20_000_000
STEPS = (1000, 30_000)
# The arguments of operators on windows, whose kernels keep their size.
WINDOWS = {"kernel_size", "stride", "padding", "output_size"}


class Larger(Maker):
    """Makes arrays whose sides are `factor` times as long, except those of one element."""

    def __init__(self, dtype: str, factor: int) -> None:
        super().__init__(dtype)
        self.factor = factor

    def sides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        larger = tuple(n * self.factor if n > 1 else n for n in shape)
        if math.prod(larger) > MOST_ELEMENTS:
            raise ValueError(f"{larger} is too large")
        return larger

    def __call__(self, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return super().__call__(self.sides(shape), low, high)

    def distinct(self, shape: tuple[int, ...]) -> np.ndarray:
        if self.dtype == "bool":
            return super().__call__(self.sides(shape))
        return super().distinct(self.sides(shape))

    def index(self, shape: tuple[int, ...], below: int) -> np.ndarray:
        return super().index(self.sides(shape), below * self.factor)

    def mask(self, shape: tuple[int, ...]) -> np.ndarray:
        return super().mask(self.sides(shape))


def drawn(op: Operator, make: Maker, count: int = TRIED) -> list[Sample]:
    """The first samples that the maker allows: one whose code needs the sizes of the tests ends
    them."""
    function = registered(op)
    found = []
    try:
        every = function(make) if function else pointwise_samples(op, make)
        for sample in itertools.islice(every, count):
            found.append(sample)
    except Exception:  # of any kind, by code that was written for other sizes
        pass
    return found


def arrays(sample: Sample) -> list[np.ndarray]:
    """Those of the arguments, in order."""
    found: list[np.ndarray] = []
    map_arrays([*sample.args, *sample.kwargs.values()], found.append)
    return found


def mapped(sample: Sample, f: Callable[[np.ndarray], Any]) -> Sample:
    """The sample with f applied to each array."""
    kwargs = {k: map_arrays(v, f) for k, v in sample.kwargs.items()}
    return Sample(*map_arrays(sample.args, f), **kwargs)


def _numbers(value: Any, factor: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(
            v * factor if type(v) is int and v > 1 else _numbers(v, factor) for v in value
        )
    return value


# Ways to make a sample larger. Each takes the operator, its dtype, the sample's place and a factor,
# and gives the larger sample, or None where there is none.


def _sides(op: Operator, dtype: str, index: int, factor: int) -> Optional[Sample]:
    """Every side, drawn anew."""
    samples = drawn(op, Larger(dtype, factor), index + 1)
    return samples[index] if index < len(samples) else None


def _sides_and_sizes(op: Operator, dtype: str, index: int, factor: int) -> Optional[Sample]:
    """Every side, and the sizes in lists."""
    sample = _sides(op, dtype, index, factor)
    if sample is None:
        return None
    kwargs = {k: _numbers(v, factor) for k, v in sample.kwargs.items()}
    return Sample(*(_numbers(v, factor) for v in sample.args), **kwargs)


def _numbers_alone(op: Operator, dtype: str, index: int, factor: int) -> Optional[Sample]:
    """Every whole number of a call without tensors."""
    sample = drawn(op, Maker(dtype))[index]
    if arrays(sample):
        return None
    return Sample(*_numbers(list(sample.args), factor), **sample.kwargs)


def _tiled(dims: Callable[[int], tuple[int, ...]], alike: bool) -> Callable[..., Optional[Sample]]:
    """Repeats the sample's values along dims(ndim) of the first array; `alike`: and along those of
    the others that are as long there."""

    def way(op: Operator, dtype: str, index: int, factor: int) -> Optional[Sample]:
        sample = drawn(op, Maker(dtype))[index]
        if not arrays(sample):
            return None
        first = arrays(sample)[0]

        def repeated(a: np.ndarray) -> np.ndarray:
            own = dims(a.ndim) if a is first or alike else ()
            theirs = dims(first.ndim)
            same = [a.shape[d] == first.shape[e] for d, e in zip(own, theirs)]
            if len(own) != len(theirs) or not all(same) or not own:
                return a
            times = [1] * a.ndim
            for d in own:
                times[d] = factor
            return np.tile(a, times)

        return mapped(sample, repeated) if dims(first.ndim) else None

    return way


def _matrices(op: Operator, dtype: str, index: int, factor: int) -> Optional[Sample]:
    """The sides of matrices: their values repeated, a tenth different, with a large diagonal.
    Symmetric and positive definite matrices stay so. Right sides and vectors grow with them."""
    sample = drawn(op, Maker(dtype))[index]
    first = next((a for a in arrays(sample) if a.ndim > 1), None)
    if first is None:
        return None
    rows, columns = first.shape[-2:]
    rng = np.random.default_rng(0)

    def larger(a: np.ndarray) -> np.ndarray:
        if a.ndim > 1 and a.shape[-2:] == (rows, columns) and a.dtype.kind in "fc":
            out = np.tile(a, (factor, factor))
            noise = rng.uniform(-0.1, 0.1, (factor * rows, factor * columns))
            shift = np.eye(*noise.shape) * (0.5 * max(noise.shape) * np.abs(a).max())
            noise = (noise + noise.T) / 2 if rows == columns else noise
            return (out * (1 + noise) + (shift if factor > 1 else 0)).astype(a.dtype)
        times = [1] * a.ndim
        if a.ndim > 1 and a.shape[-2] in (rows, columns):
            times[-2] = factor
        elif a.ndim and a.shape[-1] in (rows, columns):
            times[-1] = factor
        return np.tile(a, times) if a.ndim else a

    return mapped(sample, larger)


WAYS: dict[str, Callable[[Operator, str, int, int], Optional[Sample]]] = {
    "sides": _sides,
    "sides and sizes": _sides_and_sizes,
    "numbers": _numbers_alone,
    "rows": _tiled(lambda n: (0,) if n else (), True),
    "rows of the first": _tiled(lambda n: (0,) if n else (), False),
    "columns": _tiled(lambda n: (n - 1,) if n else (), True),
    "matrices": _matrices,
    "images": _tiled(lambda n: (0, *range(2, n)) if n > 2 else (), False),
}


def _ways(op: Operator) -> list[str]:
    general = [name for name in WAYS if name not in ("images", "matrices")]
    if WINDOWS & {a["name"] for a in op.args}:
        return ["images", *general[1:], "sides"]
    return ["matrices", *general] if op.json["python_module"] == "linalg" else general


class Plan(NamedTuple):
    """A call, as either library makes it."""

    operator: str
    sample: int
    way: str
    factor: int
    gradient: bool
    elements: int  # of the largest tensor, results among them

    @property
    def name(self) -> str:
        return self.operator + (", gradient" if self.gradient else "")


def dtype_of(op: Operator) -> str:
    """The dtype to measure an operator in: float32, where it has that."""
    known = [d for d in ("float32", "int64", "int32", "bool") if d in op.dtypes]
    return (known or list(op.dtypes) or ["float32"])[0]


def own_kernel(op: Operator) -> bool:
    """Whether it has a kernel of its own for the CPU."""
    return op.kind in ("pointwise", "reduce") or any(d["key"] == "CPU" for d in op.json["dispatch"])


def counterpart(op: Operator) -> Optional[Callable[..., Any]]:
    """PyTorch's function of the same name, where PyTorch is installed and has one."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    module = op.json["python_module"]
    if "function" not in op.json["variants"]:
        places = [torch.Tensor]
    else:
        places = [torch._C._VariableFunctions, torch] if module is None else []
        places += [getattr(torch._C, f"_{module}", None)] if module else []
    # The last one costs more for each call than the others do.
    for place in (*places, torch.ops.aten):
        found = getattr(place, op.name, None)
        if found is not None:
            return found
    return None


def translated(value: Any, torch: Any, dtype: str) -> Any:
    """An argument of a sample for a library."""
    if isinstance(value, (list, tuple)):
        return type(value)(translated(v, torch, dtype) for v in value)
    if isinstance(value, np.ndarray):
        if torch is treadle:
            return to_tensor(value, dtype)
        return torch.from_numpy(np.array(value, order="C"))
    if torch is treadle:
        return value
    if isinstance(value, treadle.Tensor):
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, treadle.Generator):
        return torch.Generator().manual_seed(0)
    if isinstance(value, treadle.device):
        return torch.device(str(value))
    if isinstance(value, (treadle.dtype, treadle.layout, treadle.memory_format)):
        return getattr(torch, str(value).split(".")[-1])
    return value


@dataclass
class Prepared:
    """A function and its arguments in a library; `gradient`: with the gradients by those."""

    torch: Any
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    gradient: bool

    def __call__(self) -> Any:
        result = self.function(*self.args, **self.kwargs)
        if not self.gradient:
            return result
        outputs = [t for t in self.tensors(result) if t.requires_grad]
        leaves = [t for t in self.tensors([*self.args, *self.kwargs.values()]) if t.requires_grad]
        seeds = [self.torch.ones_like(t) for t in outputs]
        return self.torch.autograd.grad(outputs, leaves, seeds, allow_unused=True)

    def tensors(self, value: Any) -> list[Any]:
        """Those in a value, in order."""
        if isinstance(value, self.torch.Tensor):
            return [value]
        if isinstance(value, (list, tuple)):
            return [t for v in value for t in self.tensors(v)]
        return []


def prepared(op: Operator, sample: Sample, torch: Any, gradient: bool) -> Prepared:
    """The call of a sample."""
    function = op.function if torch is treadle else counterpart(op)
    if function is None:
        raise NotImplementedError(f"{torch.__name__} has no {op.name}")
    dtype = dtype_of(op)
    args = translated(tuple(sample.args), torch, dtype)
    kwargs = {k: translated(v, torch, dtype) for k, v in sample.kwargs.items()}
    call = Prepared(torch, function, args, kwargs, gradient)
    if gradient:
        for t in call.tensors([*args, *kwargs.values()]):
            if t.is_floating_point():
                t.requires_grad_()
    return call


def made(plan: Plan, torch: Any) -> Prepared:
    """The call of a plan in a library."""
    op = by_id()[plan.operator]
    sample = WAYS[plan.way](op, dtype_of(op), plan.sample, plan.factor)
    assert sample is not None
    return prepared(op, sample, torch, plan.gradient)


def _kind(sample: Sample) -> str:
    """Alike for samples whose calls differ in sizes alone."""
    found = arrays(sample)
    if all(a.ndim and a.shape == found[0].shape for a in found):
        shapes: Any = "alike"
    else:
        shapes = [tuple(n == 1 for n in a.shape) for a in found]
    others = [v for v in (*sample.args, *sample.kwargs.values()) if not isinstance(v, np.ndarray)]
    return f"{shapes} {map_arrays(others, lambda a: a.ndim)}"


def _most(call: Prepared, result: Any) -> int:
    """The elements of the largest tensor of a call."""
    inner = [] if call.gradient else result
    return max(t.numel() for t in call.tensors([*call.args, *call.kwargs.values(), inner]))


def _larger_ones(
    op: Operator, index: int, way: str, gradient: bool, targets: Sequence[int]
) -> list[Plan]:
    """The plans of a sample for each number of elements, as far as the calls are not slow."""

    def measured(factor: int) -> tuple[Plan, float]:
        plan = Plan(op.id, index, way, factor, gradient, 0)
        call = made(plan, treadle)
        start = time.perf_counter()
        result = call()
        taken = time.perf_counter() - start
        return plan._replace(elements=_most(call, result)), taken

    found: list[Plan] = []
    plan, taken = measured(1)
    power = 2.0 if way == "matrices" else 1.0
    if way.startswith("sides"):
        power = max([1.0, *(float(a.ndim) for a in arrays(drawn(op, Maker(dtype_of(op)))[index]))])
    # In steps: how results grow is known before they could be too large for the memory.
    steps = {n for n in STEPS if n < max(targets)}
    for target in sorted({*steps, *targets}):
        for _ in range(5):
            wanted = max(1, round(plan.factor * (target / max(plan.elements, 1)) ** (1 / power)))
            if wanted == plan.factor:
                break
            before = plan
            plan, taken = measured(wanted)
            # How the elements grow with the factor is seen, not known: results may be larger.
            grown = math.log(max(plan.elements, 1) / max(before.elements, 1))
            power = min(8.0, max(1.0, grown / math.log(plan.factor / before.factor)))
        # A step of the factor is coarse where there are many dimensions.
        if not target / 8 <= plan.elements <= target * 8:
            break
        if target in targets:
            found.append(plan)
        if taken > SLOW_SECONDS:
            break
    return found


class Front(NamedTuple):
    """A call through which kernels are measured: an operator's sample of this place."""

    operator: str
    gradient: bool
    sample: int


def plans(op: Operator, targets: Sequence[int], samples: int) -> list[Plan]:
    """Calls of an operator with about so many elements, of at most `samples` samples that differ in
    more than their sizes; none where no way makes one larger."""
    return _plans(op, targets, samples, False, range(TRIED))


def plans_of(front: Front, targets: Sequence[int]) -> list[Plan]:
    """The calls of plans() for one sample."""
    return _plans(by_id()[front.operator], targets, 1, front.gradient, [front.sample])


def _plans(
    op: Operator, targets: Sequence[int], samples: int, gradient: bool, places: Sequence[int]
) -> list[Plan]:
    found: list[Plan] = []
    kinds: set[str] = set()
    usual = [pair for pair in enumerate(drawn(op, Maker(dtype_of(op)))) if pair[0] in places]
    usual.sort(key=lambda pair: any(a.size == 0 for a in arrays(pair[1])))
    for way in _ways(op):
        for index, sample in usual:
            own = arrays(sample)
            if own and (own[0].size == 0 or max(a.size for a in own) < 2):
                continue
            if len(kinds) == samples or _kind(sample) in kinds:
                continue
            try:
                larger = _larger_ones(op, index, way, gradient, targets)
            except Exception:  # the operator refuses the sizes, or the sample cannot have them
                continue
            if larger:
                kinds.add(_kind(sample))
                found += larger
        if found:
            break
    return found


def _reached(op: Operator, gradient: bool) -> Iterator[tuple[int, set[str]]]:
    """For the place of each sample, the names of the operators that its call reaches."""
    for index, sample in enumerate(drawn(op, Maker(dtype_of(op)))):
        try:
            call = prepared(op, sample, treadle, gradient)
            with treadle.profiler.profile() as profile:
                call()
        except Exception:  # not for this dtype, or without a gradient
            continue
        yield index, {e.name.removeprefix("aten::") for e in profile.events()}


def fronts(wanted: set[str]) -> dict[str, list[Front]]:
    """For each kernel, by name: the calls that reach it. Those of operators that PyTorch has come
    first, then those without gradients, then those that reach the fewest others."""
    ranks: dict[str, dict[Front, tuple[bool, bool, int]]] = {kernel: {} for kernel in wanted}
    for op in operators():
        if not op.public or not has_samples(op) or op.json.get("foreach_of"):
            continue
        for gradient in (False, True):
            for index, names in _reached(op, gradient):
                for kernel in (names & wanted) - {op.name}:
                    rank = (counterpart(op) is None, gradient, len(names))
                    ranks[kernel][Front(op.id, gradient, index)] = rank
    return {kernel: sorted(found, key=found.__getitem__) for kernel, found in ranks.items()}
