"""einops: shapes by the names of dimensions."""

# SPDX-License-Identifier: Apache-2.0

import einops
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn
from uses import descend, draw, main, settle, use


@use("rearrange, reduce, repeat, einsum, pack")
def functions():
    x = torch.arange(24.0).reshape(2, 3, 4)
    packed, shapes = einops.pack([x, x[:, 0]], "b * d")
    return [
        einops.rearrange(x, "b (h w) c -> b c h w", h=3),
        einops.reduce(x, "b t c -> b c", "mean"),
        einops.repeat(x, "b t c -> (b r) t c", r=2),
        einops.einsum(x, x, "b t c, b s c -> b t s"),
        einops.unpack(packed, shapes, "b * d")[1],
    ]


@use("layers in a network")
def layers():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        Reduce("b c (h 2) (w 2) -> b c h w", "max"),
        Rearrange("b c h w -> b (c h w)"),
        EinMix("b i -> b o", weight_shape="i o", bias_shape="o", i=36, o=5),
    )
    settle(model)
    x = draw(3, 1, 8, 8)
    return descend(model, lambda: model(x).square().mean())


if __name__ == "__main__":
    main("einops")
