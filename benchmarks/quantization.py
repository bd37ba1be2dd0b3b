"""Layers in whole numbers of eight bits beside the same layers in PyTorch, in one run.

    ./dev bench quantization                 # one thread
    ./dev bench quantization --threads 2 --rounds 9 --only conv

Each library runs its own quantized layer with the same weights and inputs, and its float layer.
Times are medians of rounds in turn, in microseconds. "/ PyTorch" is Treadle's time over PyTorch's,
"/ float" that over Treadle's float layer: below 1, the quantized layer of Treadle is faster.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib.util
import warnings
from typing import Any, Callable, Dict, Iterator, Tuple

import numpy as np
from _rounds import medians

import treadle

Calls = Dict[str, Callable[[], Any]]

# Rows, features in, features out.
LINEAR = ((1, 768, 768), (64, 768, 3072), (256, 1024, 1024))
# Channels in, channels out, kernel, stride, height: those of ResNet-18.
CONVOLUTIONS = (
    (3, 64, 7, 2, 224),
    (64, 64, 3, 1, 56),
    (64, 128, 3, 2, 56),
    (128, 128, 3, 1, 28),
    (256, 256, 3, 1, 14),
    (512, 512, 3, 1, 7),
)
# Steps, batch, features, size of the state.
LSTM = ((32, 8, 128, 256),)


def _statically(t: Any, layer: Any, x: Any) -> Callable[[], Any]:
    """A call of a quantized layer with a quantized tensor."""
    q = t.ao.quantization
    model = t.nn.Sequential(q.QuantStub(), layer).eval()
    model.qconfig = q.get_default_qconfig("x86")
    prepared = q.prepare(model)
    prepared(x)
    quantized = q.convert(prepared)
    given = quantized[0](x)
    return lambda: quantized[1](given)


def _dynamically(t: Any, layer: Any, x: Any) -> Callable[[], Any]:
    made = t.ao.quantization.quantize_dynamic(t.nn.ModuleList([layer]))[0]
    return lambda: made(x)


def _with_numbers(t: Any, layer: Any, rng: Any) -> Any:
    """A layer whose parameters are the same in each library."""
    with t.no_grad():
        for parameter in layer.parameters():
            shape = tuple(parameter.shape)
            parameter.copy_(t.tensor(rng.normal(size=shape).astype(np.float32) / 20))
    return layer


def cases(libraries: Dict[str, Any]) -> Iterator[Tuple[str, str, Calls]]:
    """Each operation and its sizes, as a call of each library, and of Treadle in floats."""
    wanted: Any = []
    for n, k, m in LINEAR:
        for name, how in (("linear", _statically), ("dynamic linear", _dynamically)):
            make_linear = lambda t, k=k, m=m: t.Linear(k, m)  # noqa: E731
            wanted.append((name, f"{n} x {k} by {m}", how, (n, k), make_linear))
    for c, o, kernel, stride, size in CONVOLUTIONS:
        make = lambda t, c=c, o=o, k=kernel, s=stride: t.Conv2d(c, o, k, s, k // 2)  # noqa: E731
        text = f"{c} to {o}, {kernel}, {size}"
        wanted.append(("conv", text, _statically, (1, c, size, size), make))
    for steps, batch, features, state in LSTM:
        make_lstm = lambda t, f=features, s=state: t.LSTM(f, s)  # noqa: E731
        text = f"{steps} steps of {batch} x {features}, {state}"
        wanted.append(("dynamic LSTM", text, _dynamically, (steps, batch, features), make_lstm))
    for name, text, how, shape, make in wanted:
        calls = {}
        for library, t in libraries.items():
            rng = np.random.default_rng(0)
            layer = _with_numbers(t, make(t.nn), rng).eval()
            x = t.tensor(rng.normal(size=shape).astype(np.float32))
            calls[library] = how(t, layer, x)
            if library == "Treadle":
                calls["float"] = lambda layer=layer, x=x: layer(x)
        yield name, text, calls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="operations whose name has this text")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    libraries: Dict[str, Any] = {"Treadle": treadle}
    treadle.set_num_threads(options.threads)
    if importlib.util.find_spec("torch"):
        import torch
        import torch.ao.quantization

        torch.set_num_threads(options.threads)
        torch.set_grad_enabled(False)
        libraries["PyTorch"] = torch
    print(f"{'':16s}{'sizes':>32s}{'Treadle':>10s}{'/ float':>9s}{'/ PyTorch':>10s}")
    for name, text, calls in cases(libraries):
        if options.only not in name:
            continue
        with treadle.no_grad():
            found = medians(calls, options.rounds)
        ours = found["Treadle"]
        ratios = "".join(
            f"{ours / found[other]:{width}.2f}" if other in found else ""
            for other, width in (("float", 9), ("PyTorch", 10))
        )
        print(f"{name:16s}{text:>32s}{ours * 1e6:10.1f}{ratios}", flush=True)


if __name__ == "__main__":
    main()
