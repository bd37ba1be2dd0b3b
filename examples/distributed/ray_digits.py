"""Handwritten digits with Ray: two workers train a network, one is killed, and the run goes on.

    pip install "ray[train]" scikit-learn
    python -m treadle.run --install                     # Ray's workers find treadle by import torch
    python examples/distributed/ray_digits.py           # 40 s on two cores
    python examples/distributed/ray_digits.py --small

Ray starts a process for each worker, says to each where the first one listens, and calls
init_process_group(). prepare_model() wraps the network in DistributedDataParallel, and
prepare_data_loader() gives each worker its part of the data. In the third epoch worker 1 kills
itself; Ray then starts both workers again, which go on from the last checkpoint.

Reaches: test accuracy >= 0.97 (small: >= 0.9)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import ray.train
import torch
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCH_OF_THE_FAULT = 2


def network(channels: int) -> nn.Module:
    """Scores (N, 10) of images (N, 1, 8, 8)."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * channels * 16, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def parts() -> tuple[TensorDataset, TensorDataset]:
    """The images to learn from, and a fifth to test with."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(data.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1797))
    held_out = len(labels) // 5
    train, test = order[held_out:], order[:held_out]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def train_loop(config: dict[str, Any]) -> None:
    """The program of each worker."""
    context = ray.train.get_context()
    torch.manual_seed(0)
    model = prepare_model(network(config["channels"]))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    train, test = parts()
    loader = prepare_data_loader(DataLoader(train, batch_size=32, shuffle=True))
    first = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder) / "state.pt", map_location="cpu")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
    for epoch in range(first, config["epochs"]):
        if epoch == EPOCH_OF_THE_FAULT and context.get_world_rank() == 1:
            die_once(Path(config["mark"]))
        loader.sampler.set_epoch(epoch)
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            images, labels = test.tensors
            right = (model.module(images).argmax(1) == labels).float().mean().item()
        report(model, optimizer, epoch, {"accuracy": right, "epoch": epoch, "first": first})


def die_once(mark: Path) -> None:
    """Kill this process, unless one was killed before."""
    if not mark.exists():
        mark.touch()
        time.sleep(5)  # Ray takes note of checkpoints every 2 s
        os.kill(os.getpid(), signal.SIGKILL)


def report(model: Any, optimizer: Any, epoch: int, metrics: dict[str, Any]) -> None:
    """Tell Ray how far the run is; worker 0 also gives it a checkpoint."""
    if ray.train.get_context().get_world_rank() != 0:
        ray.train.report(metrics)
        return
    with tempfile.TemporaryDirectory() as folder:
        state = {
            "model": model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epoch": epoch,
        }
        torch.save(state, Path(folder) / "state.pt")
        ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder))


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            train_loop,
            train_loop_config={
                "epochs": 5 if options.small else 15,
                "channels": 8 if options.small else 24,
                "mark": f"{folder}/killed",
            },
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(
                name="digits", storage_path=folder, failure_config=FailureConfig(max_failures=1)
            ),
        )
        result = trainer.fit()
    ray.shutdown()
    metrics = result.metrics
    print(f"{metrics['epoch'] + 1} epochs; after the fault from epoch {metrics['first']} on")
    print(f"test accuracy {metrics['accuracy']:.4f}")
    return metrics["accuracy"]


if __name__ == "__main__":
    main()
