"""A variational autoencoder: it learns what handwritten digits look like and draws new ones.

    python -m treadle.run examples/vae.py            # 8 s on one core
    python -m treadle.run examples/vae.py --small    # 2 s

The encoder says, for a picture, where its code lies, as a normal distribution; the decoder draws a
picture from a code. A sample of the code is mean + noise * deviation, so that the gradient passes
through it. The loss is the bound of Kingma and Welling (2014): the error of the drawing plus the
distance of the codes' distribution from the standard normal one. The pictures are the 1,797 of
8 x 8 that scikit-learn ships.

Reaches: loss <= 24.5 (small: <= 27), that bound in nats per picture, of pictures not learnt from
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

PIXELS = 64


class Autoencoder(nn.Module):
    def __init__(self, width: int, code: int) -> None:
        super().__init__()
        self.code = code
        self.encoder = nn.Sequential(nn.Linear(PIXELS, width), nn.SiLU(), nn.Linear(width, width))
        self.mean = nn.Linear(width, code)
        self.log_variance = nn.Linear(width, code)
        self.decoder = nn.Sequential(
            nn.Linear(code, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, PIXELS),
        )

    def encode(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and logarithms of variances (N, code) of the codes of pictures (N, 64)."""
        hidden = F.silu(self.encoder(pictures))
        return self.mean(hidden), self.log_variance(hidden)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits of pixels (N, 64), and the means and log variances that they come from."""
        mean, log_variance = self.encode(pictures)
        codes = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(codes), mean, log_variance

    @torch.no_grad()
    def draw(self, count: int) -> torch.Tensor:
        """New pictures (count, 64)."""
        return torch.sigmoid(self.decoder(torch.randn(count, self.code)))


def bound(model: Autoencoder, pictures: torch.Tensor) -> torch.Tensor:
    """The loss, summed over the pictures."""
    logits, mean, log_variance = model(pictures)
    missed = F.binary_cross_entropy_with_logits(logits, pictures, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return missed + divergence


def side_by_side(pictures: torch.Tensor) -> str:
    """Pictures (N, 64) with values in [0, 1], as rows of characters."""
    rows = (pictures.view(-1, 8, 8).permute(1, 0, 2) * 4.99).long().tolist()
    return "\n".join(
        "  ".join("".join(2 * " .:o#"[value] for value in part) for part in row) for row in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    width, code, epochs = (128, 8, 15) if options.small else (256, 12, 150)

    pictures = torch.from_numpy(load_digits().data).float() / 16
    parts = random_split(
        TensorDataset(pictures), [0.8, 0.2], generator=torch.Generator().manual_seed(7)
    )
    train = DataLoader(parts[0], batch_size=64, shuffle=True, drop_last=True)
    test = DataLoader(parts[1], batch_size=len(parts[1]))
    model = Autoencoder(width, code)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3 if options.small else 2e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=optimizer.defaults["lr"], total_steps=epochs * len(train)
    )

    def test_loss() -> float:
        model.eval()
        with torch.inference_mode():
            return sum(bound(model, batch).item() for (batch,) in test) / len(parts[1])

    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for (batch,) in train:
            loss = bound(model, batch)
            optimizer.zero_grad()
            (loss / len(batch)).backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() / len(batch)
        if epoch % (epochs // 5) == 0:
            learnt = total / len(train)
            print(f"epoch {epoch:3}: loss {learnt:.3f}, of other pictures {test_loss():.3f}")
    print(side_by_side(model.draw(5)))
    print(f"loss {test_loss():.4f}")


if __name__ == "__main__":
    main()
