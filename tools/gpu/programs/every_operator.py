"""Calls every operator on a device with the first of its test samples, float32 and int64, and says
what its results are by a hash of their bits; gradients are taken where there are any.

    python tools/gpu/programs/every_operator.py --device cuda --seconds 60

Two runs can be compared, and a sanitizer can watch. Operators that are made of others come last;
when the time is over it stops.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import hashlib
import time
from typing import Any, Iterator

import treadle
from treadle_testing import cases, check, device
from treadle_testing.catalogue import Operator, operators

DTYPES = ("float32", "int64")


def calls(only: str) -> Iterator[tuple[Operator, str]]:
    """Operators with a dtype, those that are made of others last."""

    def composed(op: Operator) -> bool:
        return op.kind in ("composite", "view")

    for op in sorted(operators(), key=composed):
        if not cases.in_suite(op) or not cases.has_samples(op) or only not in op.id:
            continue
        for dtype in DTYPES:
            if dtype in op.dtypes:
                yield op, dtype


def digest(values: list[Any]) -> str:
    """The digest of the bits of tensors and the text of anything else."""
    whole = hashlib.sha256()
    for value in values:
        if isinstance(value, treadle.Tensor):
            value = value.detach().cpu().contiguous()
            plain = value.view(treadle.uint8) if value.dim() and value.numel() else value
            whole.update(repr((value.dtype, tuple(value.shape), plain.tolist())).encode())
        else:
            whole.update(repr(value).encode())
    return whole.hexdigest()[:16]


def results(op: Operator, dtype: str) -> list[Any]:
    """The result of the first sample, and the gradient of its sum."""
    treadle.manual_seed(0)
    sample = next(cases.samples_of(op, dtype), None)
    if sample is None:
        return []
    outcome = check.call(op, sample, dtype)
    found = check.tensors(outcome) or [outcome]
    if dtype == "float32" and op.differentiable:
        from treadle_testing import checks

        leaves, call = checks.leaves_and_call(sample, dtype)
        sums = [r.sum() for r in check.tensors(call(op, *leaves)) if r.requires_grad]
        if sums:
            found += treadle.autograd.grad(sum(sums), leaves, allow_unused=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only", default="", help="operators with this in their name")
    options = parser.parse_args()
    device.use(options.device)
    end = time.monotonic() + options.seconds
    for op, dtype in calls(options.only):
        if time.monotonic() > end:
            break
        try:
            told = digest(results(op, dtype))
        except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError) as error:
            told = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"aten::{op.id}-{dtype} {told}", flush=True)
    if options.device != "cpu":
        getattr(treadle, options.device).synchronize()


if __name__ == "__main__":
    main()
