"""ignite: engines with events."""

# SPDX-License-Identifier: Apache-2.0

import os
import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, ModelCheckpoint, PiecewiseLinear
from ignite.metrics import SSIM, Accuracy, ConfusionMatrix, Loss, RunningAverage
from torch import nn
from uses import draw, main, settle, uniform, use


@use("train and evaluate with handlers")
def train():
    model = settle(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = [(draw(8, 4), torch.arange(8) % 2) for _ in range(4)]
    trainer = create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
    judge = create_supervised_evaluator(
        model, {"accuracy": Accuracy(), "loss": Loss(nn.CrossEntropyLoss())}
    )
    RunningAverage(output_transform=lambda x: x).attach(trainer, "average")
    trainer.add_event_handler(
        Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", [(0, 0.1), (8, 0.01)])
    )
    losses = []
    trainer.add_event_handler(
        Events.EPOCH_COMPLETED, lambda e: losses.append(judge.run(rows).metrics["loss"])
    )
    judge.add_event_handler(
        Events.COMPLETED,
        EarlyStopping(3, lambda e: -e.state.metrics["loss"], trainer),
    )
    trainer.run(rows, max_epochs=2)
    return [losses, trainer.state.metrics["average"], judge.state.metrics["accuracy"]]


@use("metrics, checkpoints")
def metrics():
    table = ConfusionMatrix(3)
    table.update((torch.eye(3)[[0, 1, 2, 1]], torch.tensor([0, 1, 1, 1])))
    like = SSIM(data_range=1.0)
    like.update((uniform(2, 3, 16, 16), uniform(2, 3, 16, 16)))
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint(folder, "x", n_saved=1, create_dir=False)
        trainer = create_supervised_trainer(
            net := nn.Linear(2, 1), torch.optim.SGD(net.parameters(), 0.1), nn.MSELoss()
        )
        trainer.add_event_handler(Events.EPOCH_COMPLETED, keep, {"net": net})
        trainer.run([(draw(2, 2), draw(2, 1))], max_epochs=2)
        names = os.listdir(folder)
    return [table.compute(), like.compute(), names]


if __name__ == "__main__":
    main("pytorch-ignite")
