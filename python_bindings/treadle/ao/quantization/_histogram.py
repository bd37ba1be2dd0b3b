"""An observer that keeps a histogram, and cuts off the ends that cost more than they give.

Example:

    observer = HistogramObserver()
    observer(treadle.randn(1000))
    observer.calculate_qparams()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import struct
import warnings
from bisect import bisect_left, bisect_right
from typing import Any, Dict, List, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._introspection.build import per_tensor_affine
from treadle._tensor.type_info import iinfo
from treadle.ao.quantization._observer_base import UniformQuantizationObserverBase
from treadle.ao.quantization.utils import EPS, PER_TENSOR

# A histogram is cut into so many parts for each bin before it moves to other bins.
_UPSAMPLE = 16
# The part of all numbers by which the search moves an end.
_STEP = 1e-5


def _float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _cubes(begin: Any, end: Any) -> Any:
    """The integral of the squared distance, where the distance goes from begin to end."""
    return (end * end * end - begin * begin * begin) / 3


class HistogramObserver(UniformQuantizationObserverBase):
    """Keeps a histogram of all numbers that it saw, in `bins` bins between `min_val` and `max_val`.

    calculate_qparams() looks for the ends between which quantization has the smallest squared
    error. Infinite numbers are left out, with a warning. NotImplementedError for a scheme per
    channel.
    """

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        factory_kwargs: Optional[Dict[str, Any]] = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        self._check_scheme(qscheme, PER_TENSOR, is_dynamic)
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.bins = bins
        self.register_buffer("histogram", _C.zeros(bins, **self._factory))
        self.register_buffer("min_val", _C.tensor(float("inf"), **self._factory))
        self.register_buffer("max_val", _C.tensor(float("-inf"), **self._factory))
        self.dst_nbins = 2 ** iinfo(dtype).bits

    def forward(self, x_orig: Tensor) -> Tensor:
        """Add a tensor of any shape to the histogram, and give it back."""
        x = x_orig.detach()
        if x.numel() == 0:
            return x_orig
        low, high = _C.aminmax(x)
        if low.item() == -float("inf") or high.item() == float("inf"):
            warnings.warn("HistogramObserver: infinite numbers are left out", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if x.numel() == 0:
                return x_orig
            low, high = _C.aminmax(x)
        if self._is_empty():
            self.histogram.copy_(self._counts(x, low, high))
        else:
            low, high = _C.minimum(self.min_val, low), _C.maximum(self.max_val, high)
            added = self._counts(x, low, high).to(self.histogram.device)
            self.histogram.copy_(self._moved(low, high) + added)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig

    def _is_empty(self) -> bool:
        return self.min_val.item() == float("inf") or self.max_val.item() == float("-inf")

    def _counts(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return _C.histc(x, self.bins, min=low.item(), max=high.item())

    def _moved(self, low: Tensor, high: Tensor) -> Tensor:
        """The histogram in bins between new ends, which are not inside of its own."""
        old_low, old_high = self.min_val.item(), self.max_val.item()
        if low.item() == old_low and high.item() == old_high:
            return self.histogram
        if old_low == old_high:
            return self._counts(self.min_val, low, high) * self.histogram.sum()
        device = self.histogram.device
        parts = self.bins * _UPSAMPLE
        weights = self.histogram.repeat_interleave(_UPSAMPLE) / _UPSAMPLE
        half = 0.5 * ((self.max_val - self.min_val) / parts)
        centres = _C.linspace(old_low, old_high, parts + 1, device=device)[:-1] + half
        ends = _C.linspace(low.item(), high.item(), self.bins + 1, device=device)
        bins = (_C.bucketize(centres, ends, right=True) - 1).clamp(0, self.bins - 1)
        return _C.bincount(bins, weights=weights, minlength=self.bins)

    def _error(self, first: int, last: int) -> float:
        """The squared error where the bins from `first` to `last` are quantized, and those outside
        are cut. The numbers of a bin are taken to lie evenly in it."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        device = self.histogram.device
        begin = (_C.arange(self.bins, device=device) - first) * width
        end = begin + width
        step_of_begin, step_of_end = (
            _C.div(place, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1)
            for place in (begin, end)
        )
        density = self.histogram / width
        from_begin = begin - (step_of_begin + 0.5) * step
        to_end = end - (step_of_end * step + step / 2)
        half = _C.full((self.bins,), step / 2, device=device)
        error = density * _cubes(from_begin, half)
        error += (step_of_end - step_of_begin - 1) * (density * _cubes(-half, half))
        error += density * _cubes(-half, to_end)
        return error.sum().item()

    def _ends(self) -> Tuple[int, int]:
        """The first and the last bin between which the error is smallest. The end with more bins to
        its next quantile moves, until the error grows."""
        sums: List[float] = self.histogram.cumsum(0).tolist()
        total = self.histogram.sum().item()
        first, last = 0, self.bins - 1
        low, high = 0.0, 1.0
        smallest = float("inf")
        while low < high:
            next_low, next_high = low + _STEP, high - _STEP
            left = bisect_left(sums, _float32(next_low * total), first, last)
            right = bisect_right(sums, _float32(next_high * total), first + 1, last + 1) - 1
            next_first, next_last = first, last
            if left - first > last - right:
                next_first, low = left, next_low
            else:
                next_last, high = right, next_high
            if (next_first, next_last) == (first, last):
                continue
            error = self._error(next_first, next_last)
            if error > smallest:
                break
            smallest, first, last = error, next_first, next_last
        return first, last

    def calculate_qparams(self) -> Tuple[Tensor, Tensor]:
        """The scale and the zero point, each of shape (1,); 1 and 0 where nothing was observed."""
        if self._is_empty():
            return self._calculate_qparams(self.min_val, self.max_val)
        if len(self.histogram) != self.bins:
            raise AssertionError(
                f"HistogramObserver: expected {self.bins} bins, got {len(self.histogram)}"
            )
        width = (self.max_val - self.min_val) / self.bins
        first, last = self._ends()
        return self._calculate_qparams(
            self.min_val + width * first, self.min_val + width * (last + 1)
        )

    def _load_from_state_dict(
        self, state_dict: Dict, prefix: str, local_metadata: Dict, *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        for name, unset in (("min_val", float("inf")), ("max_val", -float("inf"))):
            # Before the third version nothing observed was a tensor without elements.
            kept = state_dict.get(prefix + name)
            if (version is None or version < 3) and kept is not None and kept.numel() == 0:
                state_dict[prefix + name] = _C.tensor(unset)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        """What it saw."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
