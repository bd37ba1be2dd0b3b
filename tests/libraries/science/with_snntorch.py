"""snntorch: neurons that spike."""

# SPDX-License-Identifier: Apache-2.0

import snntorch
import torch
from snntorch import functional, spikegen, surrogate
from torch import nn
from uses import descend, draw, main, settle, uniform, use


@use("leaky neurons over time, trained by a surrogate gradient")
def train():
    line = settle(nn.Linear(4, 2))
    leaky = snntorch.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
    x, y = draw(5, 3, 4), torch.tensor([0, 1, 0])
    loss = functional.ce_rate_loss()

    def spikes():
        memory, found = leaky.init_leaky(), []
        for step in x:
            spike, memory = leaky(line(step), memory)
            found.append(spike)
        return loss(torch.stack(found), y)

    return descend(line, spikes)


@use("other neurons, inputs as spikes")
def others():
    x = uniform(3, 4)
    kinds = [snntorch.Synaptic(0.9, 0.8), snntorch.Lapicque(beta=0.5), snntorch.Alpha(0.9, 0.8)]
    return [*(kind(x) for kind in kinds), spikegen.latency(x, num_steps=5)]


if __name__ == "__main__":
    main("snntorch")
