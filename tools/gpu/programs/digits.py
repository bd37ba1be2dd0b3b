"""The digits network of examples/digits.py on a device, and what its memory does: after the first
epoch no memory is asked of the device.

    python -m treadle.run tools/gpu/programs/digits.py --device cuda

Exits with 1 unless it reads 98 of 100 images that it did not learn from (90 after two epochs).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
from digits import Digits, Net  # noqa: E402


def asked(device: str) -> int:
    """How often memory was asked of the device."""
    place = torch.get_device_module(device)
    return place.memory_stats().get("num_device_alloc", 0) if device != "cpu" else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=25)
    options = parser.parse_args()
    torch.manual_seed(0)
    data = Digits()
    images, labels = data.images.to(options.device), data.labels.to(options.device)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1797))
    order = order.to(options.device)
    held_out = len(data) // 5
    test, train = order[:held_out], order[held_out:]
    net = Net(channels=24).to(options.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.epochs)
    loss_function = torch.nn.CrossEntropyLoss()
    after_first, start = 0, time.perf_counter()
    for epoch in range(options.epochs):
        net.train()
        shuffled = train[torch.randperm(len(train)).to(options.device)]
        for batch in shuffled.split(64):
            optimizer.zero_grad()
            loss_function(net(images[batch]), labels[batch]).backward()
            optimizer.step()
        scheduler.step()
        if epoch == 0:
            after_first = asked(options.device)
    torch.get_device_module(options.device).synchronize()
    seconds = time.perf_counter() - start
    later = asked(options.device) - after_first
    net.eval()
    with torch.no_grad():
        right = (net(images[test]).argmax(dim=1) == labels[test]).float().mean().item()
    print(f"* {options.epochs} epochs in {seconds:.1f} s: test accuracy {right:.4f}")
    print(f"* memory asked of the device: {after_first} times in the first epoch, {later} later")
    return 0 if right >= (0.98 if options.epochs > 2 else 0.9) and not later else 1


if __name__ == "__main__":
    sys.exit(main())
