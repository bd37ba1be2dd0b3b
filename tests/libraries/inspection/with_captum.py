"""captum: why a model says what it says."""

# SPDX-License-Identifier: Apache-2.0

import torch
from captum import attr
from torch import nn
from uses import draw, main, settle, use


def network():
    return settle(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))).eval()


@use("attribution by gradients")
def gradients():
    model, x = network(), draw(2, 4)
    base = torch.zeros(2, 4)
    return [
        attr.IntegratedGradients(model).attribute(x, base, target=1, return_convergence_delta=True),
        attr.Saliency(model).attribute(x.clone(), target=1),
        attr.DeepLift(model).attribute(x, base, target=1),
        attr.InputXGradient(model).attribute(x, target=1),
        attr.GuidedBackprop(model).attribute(x, target=1),
        attr.LRP(model).attribute(x, target=1),
    ]


@use("attribution by perturbation, and of layers")
def changes():
    model, x = network(), draw(2, 4)
    return [
        attr.FeatureAblation(model).attribute(x, target=1),
        attr.Occlusion(model).attribute(x, sliding_window_shapes=(2,), target=1),
        attr.LayerConductance(model, model[0]).attribute(x, target=1),
        attr.LayerActivation(model, model[1]).attribute(x),
        attr.NeuronConductance(model, model[0]).attribute(x, 2, target=1),
    ]


if __name__ == "__main__":
    main("captum")
