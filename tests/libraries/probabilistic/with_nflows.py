"""nflows: flows that can be inverted."""

# SPDX-License-Identifier: Apache-2.0

from nflows import distributions, flows, transforms
from uses import descend, draw, main, settle, use


@use("train a flow, sample from it")
def flow():
    steps = transforms.CompositeTransform(
        [
            transforms.MaskedAffineAutoregressiveTransform(3, 8),
            transforms.ReversePermutation(3),
            transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
                3, 8, tails="linear", tail_bound=3.0
            ),
        ]
    )
    flow, x = settle(flows.Flow(steps, distributions.StandardNormal([3]))), draw(5, 3)
    losses = descend(flow, lambda: -flow.log_prob(x).mean())
    return [losses, list(flow.sample(4).shape), flow.transform_to_noise(x)]


if __name__ == "__main__":
    main("nflows")
