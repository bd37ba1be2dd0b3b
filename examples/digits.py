"""Handwritten digits: a small convolutional network learns to read 8x8 images.

    python -m treadle.run examples/digits.py            # 6 s on one core
    python -m treadle.run examples/digits.py --small    # 1 s: a smaller network, fewer epochs

The data are the 1,797 images that scikit-learn ships. A fifth of them, fixed by the seed, is held
out for testing. The loss of every epoch goes to loss_curve.png.

Reaches: test accuracy >= 0.98 (small: >= 0.9)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from tqdm import tqdm


class Digits(Dataset):
    """Images (1, 8, 8) with values in [0, 1], and their labels."""

    def __init__(self) -> None:
        data = load_digits()
        self.images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16.0
        self.labels = torch.tensor(data.target, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


def shifted(images: torch.Tensor) -> torch.Tensor:
    """The images moved together by a random step of at most one pixel; what comes in at the edge is
    empty."""
    down, right = (torch.randint(-1, 2, (2,))).tolist()
    moved = torch.zeros_like(images)
    height, width = images.shape[2:]
    moved[:, :, max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = (
        images[
            :, :, max(-down, 0) : height + min(-down, 0), max(-right, 0) : width + min(-right, 0)
        ]
    )
    return moved


class Net(nn.Module):
    """Two convolutions with batch normalisation, one pooling, two linear layers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.BatchNorm2d(2 * channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(2 * channels * 4 * 4, 128),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(128, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores (N, 10) of images (N, 1, 8, 8)."""
        return self.classifier(self.features(images))


def accuracy(net: nn.Module, loader: DataLoader) -> float:
    """The fraction of images that the network reads correctly."""
    net.eval()
    right, total = 0, 0
    with torch.no_grad():
        for images, labels in loader:
            right += (net(images).argmax(dim=1) == labels).sum().item()
            total += len(labels)
    return right / total


def plot(losses: list[float], path: str) -> None:
    """Write the loss curve as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    axes.plot(range(1, len(losses) + 1), losses, marker="o", markersize=3)
    axes.set(xlabel="epoch", ylabel="mean training loss", yscale="log", title="Handwritten digits")
    axes.grid(True, which="both", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=None, help="default 25, or 3 with --small")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", default="loss_curve.png", help="where the loss curve goes")
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()
    epochs = options.epochs if options.epochs is not None else (3 if options.small else 25)

    torch.manual_seed(options.seed)
    digits = Digits()
    # The split has a generator of its own: it stays the same whatever else is drawn.
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(1797)).tolist()
    held_out = len(digits) // 5
    test = DataLoader(Subset(digits, order[:held_out]), batch_size=256)
    train = DataLoader(
        Subset(digits, order[held_out:]), batch_size=options.batch_size, shuffle=True
    )

    net = Net(channels=8 if options.small else 24)
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=options.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs, 1))
    count = sum(parameter.numel() for parameter in net.parameters())
    print(
        f"{count:,} parameters; {len(order) - held_out} images to learn from, {held_out} to test "
        "with"
    )

    losses = []
    started = time.perf_counter()
    with tqdm(total=epochs * len(train), desc="training", unit="batch") as progress:
        for epoch in range(epochs):
            net.train()
            total = 0.0
            for images, labels in train:
                if not options.small:
                    images = shifted(images)
                optimizer.zero_grad()
                loss = loss_function(net(images), labels)
                loss.backward()
                optimizer.step()
                total += loss.item() * len(labels)
                progress.update()
            scheduler.step()
            losses.append(total / (len(order) - held_out))
            progress.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.4f}")
    seconds = time.perf_counter() - started

    if losses:
        plot(losses, options.plot)
        print(f"trained {epochs} epochs in {seconds:.1f} s; loss curve in {options.plot}")
    result = accuracy(net, test)
    print(f"test accuracy {result:.4f}")
    return result


if __name__ == "__main__":
    main()
