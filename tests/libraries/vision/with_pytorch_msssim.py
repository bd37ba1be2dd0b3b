"""pytorch-msssim: the likeness of images by their structure."""

# SPDX-License-Identifier: Apache-2.0

import pytorch_msssim
from uses import main, uniform, use


@use("the structural similarity of images as a loss, with gradients")
def likeness():
    x, y = (uniform(2, 3, 64, 64) * 255).requires_grad_(), uniform(2, 3, 64, 64) * 255
    layer = pytorch_msssim.SSIM(data_range=255, size_average=True, channel=3)
    loss = 1 - layer(x, y)
    loss.backward()
    each = pytorch_msssim.ssim(x, y, data_range=255, size_average=False)
    return [loss, each, 1e4 * x.grad]


@use("the same at several scales")
def scales():
    x = uniform(1, 3, 176, 176).requires_grad_()
    y = (x.detach() + 0.1 * uniform(1, 3, 176, 176)).clamp(0, 1)
    loss = pytorch_msssim.ms_ssim(x, y, data_range=1)
    loss.backward()
    return [loss, 1e4 * x.grad]


if __name__ == "__main__":
    main("pytorch-msssim")
