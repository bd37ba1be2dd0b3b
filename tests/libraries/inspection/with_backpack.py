"""backpack-for-pytorch: more than gradients from a backward pass."""

# SPDX-License-Identifier: Apache-2.0

import torch
from backpack import backpack, extend, extensions
from torch import nn
from uses import draw, main, settle, use


@use("per-sample gradients, variances, curvature")
def curvature():
    model = extend(settle(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))))
    loss = extend(nn.CrossEntropyLoss())(model(draw(5, 4)), torch.tensor([0, 1, 1, 0, 1]))
    asked = (extensions.BatchGrad(), extensions.Variance(), extensions.DiagGGNExact())
    with backpack(*asked, extensions.KFLR()):
        loss.backward()
    p = model[0].weight
    return [p.grad, p.grad_batch, p.variance, p.diag_ggn_exact, list(p.kflr)]


@use("the same for a convolution")
def convolution():
    model = settle(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)))
    loss = extend(nn.CrossEntropyLoss())(extend(model)(draw(3, 2, 4, 4)), torch.tensor([0, 1, 1]))
    with backpack(extensions.BatchGrad(), extensions.DiagGGNExact(), extensions.DiagHessian()):
        loss.backward()
    p = model[0].weight
    return [p.grad, p.grad_batch, p.diag_ggn_exact, p.diag_h]


if __name__ == "__main__":
    main("backpack-for-pytorch")
