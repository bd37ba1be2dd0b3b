"""lpips: how alike two images look."""

# SPDX-License-Identifier: Apache-2.0

import lpips
from uses import draw, main, settle, use


@use("the perceptual distance between two images, with gradients")
def distance():
    model = settle(lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False)).eval()
    x = draw(1, 3, 64, 64).requires_grad_()
    found = model(x, draw(1, 3, 64, 64))
    found.sum().backward()
    return [found, x.grad]


if __name__ == "__main__":
    main("lpips")
