"""The text of the language models, verses.txt, as characters and as numbers.

Example:

    verses = Verses()
    verses.decode(verses.encode("The Raven"))    # 'The Raven'
    train, test = verses.split()                 # the text, in numbers
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path

import torch


class Verses:
    """The text, and a number for each character that it has."""

    def __init__(self) -> None:
        lines = (Path(__file__).parent / "verses.txt").read_text().splitlines()
        self.text = "\n".join(line for line in lines if not line.startswith("#")).strip() + "\n"
        self.characters = sorted(set(self.text))
        self._numbers = {character: number for number, character in enumerate(self.characters)}

    def encode(self, text: str) -> torch.Tensor:
        """The numbers of characters, int64."""
        return torch.tensor([self._numbers[character] for character in text])

    def decode(self, numbers: torch.Tensor) -> str:
        return "".join(self.characters[number] for number in numbers.tolist())

    def split(self, part: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
        """The text to learn from and the text to test with, a part of it from its middle."""
        begin = len(self.text) // 2
        end = begin + int(len(self.text) * part)
        return self.encode(self.text[:begin] + self.text[end:]), self.encode(self.text[begin:end])
