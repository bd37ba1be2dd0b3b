"""fvcore: counts of work, losses, schedules."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
from fvcore.common.checkpoint import Checkpointer
from fvcore.common.param_scheduler import CosineParamScheduler, MultiStepParamScheduler
from fvcore.nn import (
    FlopCountAnalysis,
    giou_loss,
    parameter_count,
    sigmoid_focal_loss,
    smooth_l1_loss,
)
from torch import nn
from uses import draw, main, settle, use


@use("count operations and parameters of a model")
def counts():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    count = FlopCountAnalysis(model, draw(1, 3, 8, 8))
    return [count.total(), dict(count.by_operator()), parameter_count(model)[""]]


@use("losses, schedules, checkpoints")
def losses():
    boxes = torch.tensor([[0.0, 0, 4, 4]]), torch.tensor([[1.0, 1, 5, 6]])
    with tempfile.TemporaryDirectory() as folder:
        model = settle(nn.Linear(3, 2))
        Checkpointer(model, folder).save("model", step=3)
        other = nn.Linear(3, 2)
        extra = Checkpointer(other, folder).load(folder + "/model.pth")
    return [
        sigmoid_focal_loss(draw(5), torch.ones(5), reduction="mean"),
        giou_loss(*boxes),
        smooth_l1_loss(draw(5), torch.zeros(5), 0.5, reduction="sum"),
        CosineParamScheduler(0.1, 0.0)(0.3),
        MultiStepParamScheduler([1, 0.1], 10, [5])(0.7),
        extra["step"],
        torch.equal(model.weight, other.weight),
    ]


if __name__ == "__main__":
    main("fvcore")
