"""What observers make of some tensors, in PyTorch and here: each case is a name and a function of
the package and of nothing else. The figures of PyTorch 2.15 are in expected.json, which generate.py
writes.
"""

# SPDX-License-Identifier: Apache-2.0

import itertools
import warnings

PER_CHANNEL = ("per_channel_affine", "per_channel_symmetric", "per_channel_affine_float_qparams")
FAKES = (
    "default_fake_quant",
    "default_weight_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_embedding_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_histogram_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_wt_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "fused_wt_fake_quant_range_neg_127_to_127",
)


def numbers(t, seed, count=1000):
    """Numbers that float32 has exactly, most of them small, from -12 to 15 or so."""
    k = t.arange(count)
    near = ((k * k * 31 + k * 17 + seed * 57) % 1009 - 400).double() / 256
    return (near * near * near / 4 + seed / 8).float()


def _figures(scale, zero_point):
    kinds = [str(part.dtype).rpartition(".")[2] for part in (scale, zero_point)]
    return [scale.tolist(), zero_point.tolist(), *kinds]


def _observed(t, observer, shape):
    for seed in range(3):
        observer(numbers(t, seed).reshape(shape))
    return _figures(*observer.calculate_qparams())


def _faked(t, fake):
    for seed in range(3):
        rounded = fake(numbers(t, seed).reshape(10, 100))
    return [*_figures(fake.scale, fake.zero_point), rounded.flatten()[::37].tolist()]


def _fused(t, low, high, symmetric, first, last):
    x = t.tensor([low, high])
    switch, scale = t.tensor([1]), t.tensor([1.0])
    zero_point = t.tensor([0], dtype=t.int32)
    ends = [t.tensor(float("inf")), t.tensor(float("-inf"))]
    rounded = t.fused_moving_avg_obs_fake_quant(
        x, switch, switch, *ends, scale, zero_point, 0.01, first, last, -1, False, symmetric
    )
    return [*_figures(scale, zero_point), rounded.tolist(), [end.item() for end in ends]]


def _histogram(t, tensors, **settings):
    observer = t.ao.quantization.HistogramObserver(**settings)
    for tensor in tensors:
        observer(tensor)
    return [*_figures(*observer.calculate_qparams()), observer.histogram[:20].tolist()]


def cases(t):
    """The figures of a package by the name of each case."""
    q = t.ao.quantization
    made = {}
    for name, dtype in itertools.product(
        ("MinMaxObserver", "MovingAverageMinMaxObserver", "HistogramObserver"), ("quint8", "qint8")
    ):
        for scheme, reduced in itertools.product(
            ("per_tensor_affine", "per_tensor_symmetric"), (False, True)
        ):
            if (dtype, scheme, reduced) != ("quint8", "per_tensor_symmetric", True):
                observer = getattr(q, name)(
                    dtype=getattr(t, dtype), qscheme=getattr(t, scheme), reduce_range=reduced
                )
                made[f"{name} {dtype} {scheme} {reduced}"] = _observed(t, observer, (10, 100))
    for name, dtype, scheme in itertools.product(
        ("PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"),
        ("quint8", "qint8"),
        PER_CHANNEL,
    ):
        observer = getattr(q, name)(dtype=getattr(t, dtype), qscheme=getattr(t, scheme), ch_axis=1)
        made[f"{name} {dtype} {scheme}"] = _observed(t, observer, (20, 5, 10))
    for name in (
        "default_observer",
        "default_histogram_observer",
        "default_weight_observer",
        "default_per_channel_weight_observer",
        "weight_observer_range_neg_127_to_127",
        "default_fixed_qparams_range_0to1_observer",
    ):
        made[name] = _observed(t, getattr(q, name)(), (10, 100))
    made["qint32"] = _observed(t, q.MinMaxObserver(dtype=t.qint32), (1000,))
    made["nothing seen"] = _figures(*q.MinMaxObserver().calculate_qparams())
    made["one number"] = _observed_once(t, q.MinMaxObserver(), t.zeros(3))
    made["positive"] = _observed_once(t, q.MinMaxObserver(), t.tensor([2.0, 5.0]))
    made["negative"] = _observed_once(t, q.MinMaxObserver(), t.tensor([-2.0, -5.0]))
    made["histogram of constants"] = _histogram(
        t, [t.ones(10), t.ones(5) * 2, t.ones(3) * 2, t.zeros(2) - 5]
    )
    made["histogram of 64 bins"] = _histogram(
        t, [numbers(t, seed) * (seed + 1) for seed in range(6)], bins=64
    )
    made["histogram of infinite numbers"] = _histogram(
        t, [t.tensor([1.0, float("inf"), -2.0]), t.tensor([float("-inf")])], bins=16
    )
    for name in FAKES:
        made[name] = _faked(t, getattr(q, name)())
    for low, high, symmetric, ends in itertools.product(
        (-3.75, -1e-6, 0.0, -0.0078125),
        (0.0, 1e-7, 2.25, 100.0),
        (False, True),
        ((0, 255), (-128, 127), (0, 127)),
    ):
        made[f"fused {low} {high} {symmetric} {ends}"] = _fused(t, low, high, symmetric, *ends)
    return made


def _observed_once(t, observer, tensor):
    observer(tensor)
    return _figures(*observer.calculate_qparams())


def figures(t):
    """All cases of a package, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cases(t)
