"""Loads the extension of rms_norm.cc, gives it its derivative, and compares it with operators.

python rms_norm.py rms_norm.so                     # on PyTorch
python -m treadle.run rms_norm.py rms_norm.so      # on Treadle, the same file
"""

# SPDX-License-Identifier: Apache-2.0

import sys

import torch

torch.ops.load_library(sys.argv[1])
rms_norm = torch.ops.binary_extension.rms_norm


def setup_context(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def backward(ctx, grad):
    x, weight = ctx.saved_tensors
    grad_x, of_rows = torch.ops.binary_extension.rms_norm_backward(grad, x, weight, ctx.eps)
    return grad_x, of_rows.reshape(-1, weight.numel()).sum(0), None


torch.library.register_autograd("binary_extension::rms_norm", backward, setup_context=setup_context)

x = torch.randn(4, 5, 8, dtype=torch.float64, requires_grad=True)
weight = torch.randn(8, dtype=torch.float64, requires_grad=True)
expected = torch.nn.functional.rms_norm(x, (8,), weight, eps=1e-6)
torch.testing.assert_close(rms_norm(x, weight), expected)
assert torch.autograd.gradcheck(rms_norm, (x, weight))
assert rms_norm(x.to("meta"), weight.to("meta")).shape == x.shape
print("rms_norm: the values and gradients are right")
