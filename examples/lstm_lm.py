"""A language model with an LSTM: it reads verses from left to right and keeps what it has read.

    python -m treadle.run examples/lstm_lm.py            # 35 s on one core
    python -m treadle.run examples/lstm_lm.py --small    # 2 s

The text is cut into rows that are read side by side, some characters at a time; the state goes from
one piece to the next, but gradients end at the cut (truncated backpropagation through time). When
text that is not learnt from gets no better, the rate of learning falls. The best weights are kept
in a checkpoint.

Reaches: perplexity <= 6.6 (small: <= 9), of text that it has not seen
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math
from typing import Optional

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from verses import Verses

State = tuple[torch.Tensor, torch.Tensor]


class LanguageModel(nn.Module):
    def __init__(self, characters: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout if layers > 1 else 0.0)
        self.dropout = nn.Dropout(dropout)
        self.scores = nn.Linear(width, characters)

    def forward(
        self, numbers: torch.Tensor, state: Optional[State] = None
    ) -> tuple[torch.Tensor, State]:
        """Scores (T, N, characters) of what follows numbers (T, N), and the state after them."""
        read, state = self.lstm(self.dropout(self.embedding(numbers)), state)
        return self.scores(self.dropout(read)), state

    @torch.no_grad()
    def write(self, begin: torch.Tensor, count: int, temperature: float = 0.7) -> torch.Tensor:
        """Numbers (T,) and `count` more, each drawn from what the model expects."""
        self.eval()
        numbers, state = begin, None
        read = begin
        for _ in range(count):
            scores, state = self(read.unsqueeze(1), state)
            read = torch.multinomial((scores[-1, 0] / temperature).softmax(dim=0), 1)
            numbers = torch.cat([numbers, read])
        return numbers


def rows(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """The text as `count` columns that are read side by side, (T, count)."""
    return numbers[: len(numbers) // count * count].view(count, -1).t().contiguous()


def read_through(
    model: LanguageModel,
    text: torch.Tensor,
    piece: int,
    optimizer: Optional[torch.optim.Optimizer] = None,
) -> float:
    """The mean loss over a text (T, N); with an optimizer, one epoch of learning."""
    model.train(optimizer is not None)
    state: Optional[State] = None
    total = 0.0
    for begin in range(0, len(text) - 1, piece):
        x, y = text[begin : begin + piece][: len(text) - 1 - begin], text[begin + 1 :][:piece]
        if state is not None:
            state = (state[0].detach(), state[1].detach())
        with torch.set_grad_enabled(optimizer is not None):
            scores, state = model(x, state)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
        total += loss.item() * len(x)
    return total / (len(text) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--checkpoint", default="lstm_lm.pt", help="where the best weights go")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)

    verses = Verses()
    train, test = verses.split()
    columns, piece, epochs = (16, 32, 5) if options.small else (16, 48, 40)
    train, test = rows(train, columns), rows(test, columns)
    width, layers, dropout = (64, 1, 0.0) if options.small else (128, 2, 0.4)
    model = LanguageModel(len(verses.characters), width, layers, dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2 if options.small else 4e-3)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=2)

    best = math.inf
    for epoch in range(epochs):
        loss = read_through(model, train, piece, optimizer)
        held_out = read_through(model, test, piece)
        scheduler.step(held_out)
        if held_out < best:
            best = held_out
            torch.save(model.state_dict(), options.checkpoint)
        if options.small or epoch % 5 == 4:
            rate = optimizer.param_groups[0]["lr"]
            print(
                f"epoch {epoch + 1:2}: loss {loss:.3f}, of other text {held_out:.3f}, lr {rate:g}"
            )

    model.load_state_dict(torch.load(options.checkpoint, weights_only=True))
    print(verses.decode(model.write(verses.encode("Once upon a"), 60 if options.small else 500)))
    print(f"perplexity {math.exp(read_through(model, test, piece)):.4f}")


if __name__ == "__main__":
    main()
