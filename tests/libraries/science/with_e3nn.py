"""e3nn: networks that turn with their input."""

# SPDX-License-Identifier: Apache-2.0

import torch
from e3nn import nn, o3
from uses import draw, main, settle, use


@use("spherical harmonics, representation matrices, a linear layer")
def basics():
    x = draw(5, 3)
    turn = o3.angles_to_matrix(*torch.tensor([0.3, 0.5, 0.7]))
    waves = o3.spherical_harmonics("0e + 1o + 2e", x, normalize=True)
    matrix = o3.Irreps("0e + 1o + 2e").D_from_matrix(turn)
    turned = o3.spherical_harmonics("0e + 1o + 2e", x @ turn.T, normalize=True)
    layer = settle(o3.Linear("2x0e + 1o", "3x0e + 2x1o"))
    return [waves, torch.allclose(turned, waves @ matrix.T, atol=1e-4), layer(draw(4, 5))]


@use("tensor products and gates")
def products():
    product = settle(o3.FullyConnectedTensorProduct("2x0e + 1o", "0e + 1o", "2x0e + 1o"))
    gate = nn.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
    x = draw(3, 5).requires_grad_()
    out = product(x, draw(3, 4))
    out.sum().backward()
    return [out, x.grad, gate(draw(3, 6)), nn.BatchNorm("2x0e + 1o")(x)]


if __name__ == "__main__":
    main("e3nn")
