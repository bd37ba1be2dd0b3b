"""A small residual network reads handwritten digits, and a run that was stopped goes on.

    python -m treadle.run examples/resnet.py                      # 10 s on one core
    python -m treadle.run examples/resnet.py --small              # 2 s
    python -m treadle.run examples/resnet.py --small --stop 1     # leaves a checkpoint ...
    python -m treadle.run examples/resnet.py --small --resume     # ... and goes on from it

A block adds what two convolutions make of its input to the input itself. The checkpoint has all
that a run needs to end as if it had not been stopped: the weights, the state of the optimizer and
of the scheduler, and that of the random numbers. The pictures are the 1,797 of 8 x 8 that
scikit-learn ships, made twice as large.

Reaches: accuracy >= 0.98 (small: >= 0.9), on pictures not learnt from
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """Two convolutions beside a shortcut, itself a 1 x 1 convolution where sizes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm_1 = nn.BatchNorm2d(outputs)
        self.conv_2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm_2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.norm_1(self.conv_1(x)), inplace=True)
        return F.relu(self.norm_2(self.conv_2(hidden)) + self.shortcut(x))


class ResNet(nn.Module):
    """Three stages of blocks; each after the first halves the sides and doubles the channels."""

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )
        stages: list[nn.Module] = []
        inputs = channels
        for outputs, stride in ((channels, 1), (2 * channels, 2), (4 * channels, 2)):
            for i in range(blocks):
                stages.append(Block(inputs, outputs, stride if i == 0 else 1))
                inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Block):
                # Each block begins as its shortcut (Goyal and others, 2017).
                nn.init.zeros_(module.norm_2.weight)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Scores (N, 10) of pictures (N, 1, height, width)."""
        return self.head(self.stages(self.stem(pictures)))


def accuracy(net: nn.Module, loader: DataLoader) -> float:
    """The fraction of pictures that are read correctly."""
    net.eval()
    with torch.no_grad():
        right = torch.cat([net(pictures).argmax(dim=1) == labels for pictures, labels in loader])
    return right.float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--checkpoint", default="resnet.pt", help="where the run's state goes")
    parser.add_argument("--stop", type=int, metavar="EPOCH", help="stop after this epoch")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    channels, blocks, epochs = (8, 1, 4) if options.small else (16, 2, 10)

    data = load_digits()
    pictures = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    pictures = F.interpolate(pictures, scale_factor=2, mode="bilinear", align_corners=False)
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1797))
    first, rest = order.tensor_split([len(order) // 5])
    test = DataLoader(TensorDataset(pictures[first], labels[first]), batch_size=120)
    train = DataLoader(TensorDataset(pictures[rest], labels[rest]), batch_size=32, shuffle=True)

    net = ResNet(channels, blocks)
    optimizer = torch.optim.SGD(
        net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    loss_function = nn.CrossEntropyLoss(label_smoothing=0.05)
    done = 0
    if options.resume:
        state = torch.load(options.checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["random"])
        done = state["epochs"]

    for epoch in range(done + 1, (options.stop or epochs) + 1):
        net.train()
        total = 0.0
        for batch, answers in train:
            optimizer.zero_grad()
            loss = loss_function(net(batch), answers)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch:2}: loss {total / len(train):.4f}")
        state = {
            "net": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "random": torch.get_rng_state(),
            "epochs": epoch,
        }
        torch.save(state, options.checkpoint)
    print(f"accuracy {accuracy(net, test):.4f}")


if __name__ == "__main__":
    main()
