"""A character-level GPT: it reads verses, then writes some.

    python -m treadle.run examples/char_gpt.py            # a minute on one core
    python -m treadle.run examples/char_gpt.py --small    # 2 s

A decoder of transformer blocks, each with causal attention and a small network, learns to say which
character comes next. Weights with two dimensions decay and the others do not; the rate of learning
warms up and then falls along a cosine. The trained model goes to a checkpoint, and a new model that
reads it writes the sample.

Reaches: loss <= 1.95 (small: <= 2.5), in nats per character of text that it has not seen
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn
from verses import Verses


@dataclass
class Shape:
    """The sizes of a model."""

    characters: int
    context: int = 64
    width: int = 64
    heads: int = 4
    blocks: int = 3
    dropout: float = 0.1


class Attention(nn.Module):
    """Each place looks at the places before it, in several heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.projections = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, T, width) to the same."""
        n, t, width = x.shape
        heads = self.projections(x).view(n, t, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        return self.out(seen.transpose(1, 2).reshape(n, t, width))


class Block(nn.Module):
    """Attention, then a network at each place, each added to what came in."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.network = nn.Sequential(
            nn.Linear(shape.width, 4 * shape.width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * shape.width, shape.width),
            nn.Dropout(shape.dropout),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.network(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.characters = nn.Embedding(shape.characters, shape.width)
        self.places = nn.Embedding(shape.context, shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.norm = nn.LayerNorm(shape.width)
        self.scores = nn.Linear(shape.width, shape.characters, bias=False)
        self.scores.weight = self.characters.weight  # one table for reading and for writing
        self.register_buffer("numbers", torch.arange(shape.context), persistent=False)
        self.apply(self._begin)

    @staticmethod
    def _begin(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.05)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Scores (N, T, characters) of what follows each place of numbers (N, T)."""
        places = self.places(self.numbers[: numbers.shape[1]])
        x = self.dropout(self.characters(numbers) + places)
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))

    @torch.no_grad()
    def write(self, begin: torch.Tensor, count: int, best: int = 10) -> torch.Tensor:
        """Numbers (T,) and `count` more, each drawn from the `best` most likely."""
        self.eval()
        numbers = begin.unsqueeze(0)
        for _ in range(count):
            scores, places = self(numbers[:, -self.shape.context :])[:, -1].topk(best)
            drawn = torch.multinomial(scores.softmax(dim=-1), 1)
            numbers = torch.cat([numbers, places.gather(1, drawn)], dim=1)
        return numbers[0]


def optimizer_of(model: nn.Module, rate: float) -> torch.optim.AdamW:
    """AdamW that lets matrices decay, but not biases and gains."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95))


def loss_of(model: GPT, numbers: torch.Tensor) -> torch.Tensor:
    """The loss of windows (N, context + 1): each character but the first is to be foretold."""
    return F.cross_entropy(model(numbers[:, :-1]).flatten(0, 1), numbers[:, 1:].flatten())


def held_out_loss(model: GPT, numbers: torch.Tensor) -> float:
    model.eval()
    with torch.inference_mode():
        windows = numbers.unfold(0, model.shape.context + 1, model.shape.context)
        return loss_of(model, windows).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--checkpoint", default="char_gpt.pt", help="where the model goes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)

    verses = Verses()
    train, test = verses.split()
    shape = Shape(len(verses.characters))
    steps, batch, rate = 1500, 16, 4e-3
    if options.small:
        shape = Shape(len(verses.characters), context=32, width=48, blocks=2, dropout=0.0)
        steps, batch, rate = 200, 16, 6e-3
    model = GPT(shape)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{count:,} parameters; {len(train):,} characters to learn from, {len(test):,} to test")

    optimizer = optimizer_of(model, rate)
    warm = steps // 20
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm, 0.52 + 0.48 * math.cos(math.pi * step / steps)),
    )
    windows = train.unfold(0, shape.context + 1, 1)  # every window, as one view
    for step in range(1, steps + 1):
        model.train()
        loss = loss_of(model, windows[torch.randint(len(windows), (batch,))])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % (steps // 5) == 0:
            print(
                f"step {step}: loss {loss.item():.3f}, of other text "
                f"{held_out_loss(model, test):.3f}"
            )

    torch.save({"shape": asdict(shape), "model": model.state_dict()}, options.checkpoint)
    saved = torch.load(options.checkpoint, weights_only=True)
    model = GPT(Shape(**saved["shape"]))
    model.load_state_dict(saved["model"])
    print(verses.decode(model.write(verses.encode("Once upon a"), 60 if options.small else 500)))
    print(f"loss {held_out_loss(model, test):.4f}")


if __name__ == "__main__":
    main()
