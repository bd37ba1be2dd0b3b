"""Autocast: what each operator does within it on the device under test, as its entry says.

Every entry with an `autocast:` is tested; here stands what each policy means, not which operator
has which. PyTorch's lists for CUDA, which programs rely on, are compared with the entries.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

import numpy as np
import pytest

import plugins
import treadle
from treadle_testing import device
from treadle_testing.cases import has_samples, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import to_tensor

DTYPES = (treadle.bfloat16, treadle.float16)
WITH_POLICY = [op for op in operators() if op.json["autocast"]]
ROWS = {"cpu": "CPU", "cuda": "CUDA"}


def policy_on(kind: str, op: Operator) -> Optional[str]:
    """The policy of the operator's entry for a kind of device."""
    rows = op.json["autocast"] or {}
    return rows.get(ROWS.get(kind, "all"), rows.get("all"))


def mapped(value: Any, f: Any) -> Any:
    """`value` with f applied to each tensor in it."""
    if isinstance(value, treadle.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)):
        items = [mapped(item, f) for item in value]
        return type(value)(items) if type(value) in (list, tuple) else tuple(items)
    if isinstance(value, dict):
        return {key: mapped(item, f) for key, item in value.items()}
    return value


def in_dtype(dtype: treadle.dtype) -> Any:
    return lambda t: t.to(dtype) if t.is_floating_point() and t.dtype != treadle.float64 else t


def calls(op: Operator) -> Iterator[tuple]:
    """The arguments of the operator's samples, as float32 tensors."""
    for sample in samples_of(op, "float32"):
        if not sample.shape_only:
            args = _tensors(sample.args), _tensors(sample.kwargs)
            yield args


def _tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return to_tensor(value, "float32")
    if isinstance(value, (list, tuple)):
        return type(value)(_tensors(item) for item in value)
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    return value


def flat(result: Any) -> list:
    if isinstance(result, (list, tuple)):
        return [t for item in result for t in flat(item)]
    return [result]


def same(got: Any, expected: Any) -> None:
    """The same dtypes, and the same bits."""
    got, expected = flat(got), flat(expected)
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        if not isinstance(b, treadle.Tensor):
            assert a == b
            continue
        assert a.dtype == b.dtype
        if b.is_complex():
            a, b = treadle.view_as_real(a), treadle.view_as_real(b)
        equal = (a == b) | ((a != a) & (b != b))
        assert equal.all().item()


def run(op: Operator, arguments: tuple) -> Any:
    args, kwargs = mapped(arguments, lambda t: t.clone())
    treadle.manual_seed(0)
    return op.function(*args, **kwargs)


def test_operators_with_a_policy_have_samples() -> None:
    assert len(WITH_POLICY) > 150
    assert {policy for op in WITH_POLICY for policy in op.json["autocast"].values()} == {
        "lower",
        "float32",
        "widest",
        "as_called",
        "refused",
    }
    assert all(has_samples(op) for op in WITH_POLICY)


@pytest.mark.parametrize("op", WITH_POLICY, ids=repr)
@pytest.mark.parametrize("lower", DTYPES, ids=str)
def test_policy(op: Operator, lower: treadle.dtype) -> None:
    kind = device.kind()
    policy = policy_on(kind, op)
    if policy is None and op.kind == "composite":
        return  # each of its parts by its own entry
    tried = 0
    for arguments in calls(op):
        tried += 1
        if policy == "refused":
            with treadle.autocast(kind, dtype=lower):
                with pytest.raises(RuntimeError, match=f"^{op.name}: .* unsafe to autocast"):
                    run(op, arguments)
            continue
        low = mapped(arguments, in_dtype(lower))
        lifted = mapped(low, in_dtype(treadle.float32))
        # (what comes in, as what it is to be computed)
        expectations = {
            "lower": [(arguments, low), (low, low)],
            "float32": [(low, lifted), (arguments, arguments)],
            "widest": [(low, low), (arguments, arguments), (_mixed(low), lifted)],
            "as_called": [(arguments, arguments)],
            None: [(arguments, arguments)],
        }[policy]
        for given, meant in expectations:
            expected = run(op, meant)
            with treadle.autocast(kind, dtype=lower):
                got = run(op, given)
            same(got, expected)
    assert tried


@pytest.mark.slow
def test_what_the_entries_say_of_cuda(tmp_path: Path) -> None:
    """By a backend of that name whose operators the CPU computes."""
    backend = plugins.build_minimal(tmp_path / "cuda.so", name="cuda")
    options = ["-q", "-p", "no:cacheprovider", "--tb=line", "-k", "test_policy"]
    on_cuda = ["--device", "cuda", "--backend", backend]
    command = [sys.executable, "-m", "pytest", *options, *on_cuda, __file__]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def _mixed(arguments: tuple) -> tuple:
    """The first floating tensor of the arguments in float32."""
    seen = []

    def widen(t: treadle.Tensor) -> treadle.Tensor:
        if seen or not t.is_floating_point():
            return t
        seen.append(t)
        return t.float()

    return mapped(arguments, widen)


@pytest.mark.parametrize("op", [op for op in WITH_POLICY if op.has_form("out")], ids=repr)
def test_out_takes_what_it_is_given(op: Operator) -> None:
    """The layer is only in the functional form's way."""
    layers = {}
    for form in op.json["forms"]:
        overload = f".{form['overload']}" if form["overload"] else ""
        facts = treadle._C._describe_operator(f"aten::{form['name']}{overload}")
        layers[form["form"]] = [layer["layer"] for layer in facts["layers"]]
    assert "autocast" in layers["functional"]
    assert "autocast" not in layers["out"]


# ---- PyTorch's lists ---------------------------------------------------------------------------

# Those of its page "Automatic Mixed Precision package", by the names that operators have here.
ON_CUDA = {
    "lower": """
        matmul addbmm addmm addmv addr baddbmm bmm chain_matmul linalg_multi_dot mm mv conv1d conv2d
        conv3d conv_transpose1d conv_transpose2d conv_transpose3d gru_cell lstm_cell linear prelu
        rnn_relu_cell rnn_tanh_cell einsum linalg_vecdot scaled_dot_product_attention
    """,
    "float32": """
        acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh tan cumprod
        cumsum dist prod renorm norm sum softmax log_softmax softplus layer_norm group_norm cdist
        pdist logsumexp linalg_vector_norm linalg_matrix_norm cosine_similarity
        cosine_embedding_loss hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
        margin_ranking_loss multilabel_margin_loss multi_margin_loss nll_loss poisson_nll_loss
        soft_margin_loss triplet_margin_loss binary_cross_entropy_with_logits upsample_nearest1d
        upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d
        upsample_trilinear3d upsample_bicubic2d
    """,
    "widest": """
        addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put scatter_add tensordot
        cat stack
    """,
    "refused": "binary_cross_entropy",
}


@pytest.mark.parametrize("policy", ON_CUDA)
def test_the_lists_for_cuda_are_those_of_pytorch(policy: str) -> None:
    names = ON_CUDA[policy].split()
    found = [op for op in operators() if op.json["namespace"] == "aten" and op.name in names]
    assert {op.name for op in found} == set(names)
    assert {op.id: policy_on("cuda", op) for op in found} == {op.id: policy for op in found}
