"""kornia: computer vision with gradients."""

# SPDX-License-Identifier: Apache-2.0

import kornia
import torch
from uses import descend, draw, main, uniform, use


@use("filters, colours, edges")
def filters():
    x = uniform(1, 3, 24, 24)
    gray = kornia.color.rgb_to_grayscale(x)
    return [
        kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
        kornia.filters.sobel(gray),
        kornia.filters.canny(gray)[0],
        kornia.color.rgb_to_hsv(x),
        kornia.color.rgb_to_lab(x),
        kornia.morphology.dilation(gray, torch.ones(3, 3)),
        kornia.enhance.equalize_clahe(gray, grid_size=(2, 2)),
    ]


@use("warps, a homography fitted by gradient descent")
def geometry():
    x = uniform(1, 1, 16, 16)
    angle = torch.nn.Parameter(torch.tensor([5.0]))
    goal = kornia.geometry.rotate(x, torch.tensor([20.0]))
    holder = torch.nn.ParameterList([angle])

    def loss():
        return (kornia.geometry.rotate(x, angle) - goal).square().mean()

    losses = descend(holder, loss, optimizer=torch.optim.Adam([angle], lr=0.5))
    points = torch.tensor([[[0.0, 0], [10, 0], [10, 10], [0, 10]]])
    matrix = kornia.geometry.get_perspective_transform(points, points * 1.5 + 1)
    return [losses, matrix, kornia.geometry.warp_perspective(x, matrix, (16, 16))]


@use("augmentations with fixed parameters, losses, features")
def others():
    x = uniform(2, 3, 32, 32)
    flips = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomHorizontalFlip(p=1.0),
        kornia.augmentation.RandomVerticalFlip(p=1.0),
        data_keys=["input", "mask"],
    )
    image, mask = flips(x, x[:, :1])
    corners = kornia.feature.harris_response(x[:, :1])
    return [
        image,
        mask,
        corners,
        kornia.losses.ssim_loss(x, image, 5),
        kornia.losses.focal_loss(draw(2, 3, 4, 4), torch.zeros(2, 4, 4).long(), 0.5).mean(),
    ]


if __name__ == "__main__":
    main("kornia")
