"""The digits network of Treadle's examples, trained on the device."""

# SPDX-License-Identifier: Apache-2.0

import treadle
from treadle import nn

EPOCHS = 8


def data() -> tuple[treadle.Tensor, treadle.Tensor]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = treadle.tensor(digits.images, dtype=treadle.float32).unsqueeze(1) / 16
    return images, treadle.tensor(digits.target, dtype=treadle.int64)


def network(channels: int = 8) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.BatchNorm2d(2 * channels), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(2 * channels * 16, 128),
        nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10),
    )  # fmt: skip


def train(device: str) -> float:
    """The accuracy on the images that were held out."""
    treadle.manual_seed(0)
    net = network().to(device)
    images, labels = data()
    order = treadle.randperm(len(labels), generator=treadle.Generator().manual_seed(1797))
    held_out, known = order[:359], order[359:]
    images, labels = images.to(device), labels.to(device)
    optimizer = treadle.optim.Adam(net.parameters(), lr=2e-3)
    loss_function = nn.CrossEntropyLoss()
    net.train()
    for _ in range(EPOCHS):
        shuffled = known[treadle.randperm(len(known))].to(device)
        for batch in shuffled.split(64):
            optimizer.zero_grad()
            x, y = images.index_select(0, batch), labels.index_select(0, batch)
            loss = loss_function(net(x), y)
            loss.backward()
            optimizer.step()
    net.eval()
    with treadle.no_grad():
        test = held_out.to(device)
        right = net(images.index_select(0, test)).argmax(1) == labels.index_select(0, test)
        return right.float().mean().item()


def test_digits_train_as_well_as_on_the_cpu_and_without_a_fallback() -> None:
    on_cpu = train("cpu")
    assert on_cpu >= 0.95
    treadle.backends.allow_fallback("opencl", False)  # one would be an error
    try:
        on_device = train("opencl")
    finally:
        treadle.backends.allow_fallback("opencl", True)
    assert on_device >= on_cpu - 0.015
