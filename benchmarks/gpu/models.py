"""Training steps of whole models, for cases.py: vision networks, a filter of ratings, a translator.

Each is written once for the library that is named `torch`. A step takes the gradients of a batch
that stays on the device and moves the weights; with a dtype, forward and loss run under autocast.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from cases import Call, Case

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Job(NamedTuple):
    """A model, its arguments, and the loss of what it returns."""

    model: Any
    inputs: tuple
    loss: Callable[[Any], Any]
    optimizer: str


def _images(torch: Any, device: str, batch: int, side: int, classes: int) -> tuple[Any, Any]:
    images = torch.randn(batch, 3, side, side, device=device)
    return images, torch.randint(0, classes, (batch,), device=device)


def _classifier(torch: Any, device: str, model: Any, batch: int, side: int) -> Job:
    images, labels = _images(torch, device, batch, side, 1000)
    loss = torch.nn.functional.cross_entropy
    return Job(model, (images,), lambda scores: loss(scores, labels), "SGD")


def digits(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """The network of examples/digits.py."""
    sys.path.insert(0, str(EXAMPLES))
    from digits import Net

    images = torch.randn(batch, 1, 8, 8, device=device)
    labels = torch.randint(0, 10, (batch,), device=device)
    loss = torch.nn.functional.cross_entropy
    return Job(Net(channels=24), (images,), lambda scores: loss(scores, labels), "Adam")


def alexnet(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """AlexNet, in the widths of Krizhevsky, "One weird trick" (2014)."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000),
    )  # fmt: skip
    return _classifier(torch, device, model, batch, 224)


def vgg(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """VGG-19 (Simonyan and Zisserman, 2014)."""
    nn = torch.nn
    layers: list[Any] = []
    before = 3
    for width, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
            before = width
        layers.append(nn.MaxPool2d(2))
    side = 64 if quick else 224
    layers += [nn.Flatten(), nn.Linear(512 * (side // 32) ** 2, 4096), nn.ReLU(), nn.Dropout()]
    layers += [nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000)]
    return _classifier(torch, device, nn.Sequential(*layers), batch, side)


def _normed(nn: Any, before: int, after: int, side: int, stride: int, groups: int = 1) -> list[Any]:
    convolution = nn.Conv2d(before, after, side, stride, side // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(after)]


def _residual(nn: Any, body: list[Any], skip: Optional[list[Any]], last: Any) -> Any:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.skip, self.last = nn.Sequential(*body), nn.Sequential(*skip or []), last

        def forward(self, x: Any) -> Any:
            return self.last(self.body(x) + self.skip(x))

    return Residual()


def resnet(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """ResNet-50 (He and others, 2015), its stride in the 3x3 convolutions."""
    nn = torch.nn
    layers = [*_normed(nn, 3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            stride = 2 if i == 0 and width > 64 else 1
            body = [*_normed(nn, before, width, 1, 1), nn.ReLU()]
            body += [*_normed(nn, width, width, 3, stride), nn.ReLU()]
            body += _normed(nn, width, 4 * width, 1, 1)
            skip = None if i else _normed(nn, before, 4 * width, 1, stride)
            layers.append(_residual(nn, body, skip, nn.ReLU()))
            before = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000)]
    return _classifier(torch, device, nn.Sequential(*layers), batch, 64 if quick else 224)


def mobilenet(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """MobileNetV2 (Sandler and others, 2018)."""
    nn = torch.nn
    layers = [*_normed(nn, 3, 32, 3, 2), nn.ReLU6()]
    before = 32
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for factor, width, count, first in (*plan, (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            stride, inner = first if i == 0 else 1, before * factor
            body = [*_normed(nn, before, inner, 1, 1), nn.ReLU6()] if factor > 1 else []
            body += [*_normed(nn, inner, inner, 3, stride, inner), nn.ReLU6()]
            body += _normed(nn, inner, width, 1, 1)
            same = stride == 1 and before == width
            added = _residual(nn, body, None, nn.Identity())
            layers.append(added if same else nn.Sequential(*body))
            before = width
    layers += [*_normed(nn, before, 1280, 1, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)]
    layers += [nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return _classifier(torch, device, nn.Sequential(*layers), batch, 64 if quick else 224)


def ncf(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """Neural collaborative filtering (He and others, 2017), for as many users and films as the
    MovieLens set of 20 million ratings has."""
    nn = torch.nn
    users, films = (1000, 200) if quick else (138_493, 26_744)

    class Filter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.multiplied = nn.ModuleList([nn.Embedding(n, 64) for n in (users, films)])
            self.read = nn.ModuleList([nn.Embedding(n, 128) for n in (users, films)])
            widths = [256, 256, 128, 64]
            steps = [[nn.Linear(a, b), nn.ReLU()] for a, b in zip(widths, widths[1:])]
            self.network = nn.Sequential(*(layer for step in steps for layer in step))
            self.last = nn.Linear(128, 1)

        def forward(self, user: Any, film: Any) -> Any:
            product = self.multiplied[0](user) * self.multiplied[1](film)
            both = torch.cat([self.read[0](user), self.read[1](film)], 1)
            return self.last(torch.cat([product, self.network(both)], 1)).squeeze(1)

    user, film = (torch.randint(0, n, (batch,), device=device) for n in (users, films))
    wanted = torch.randint(0, 2, (batch,), device=device).float()
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    return Job(Filter(), (user, film), lambda scores: loss(scores, wanted), "Adam")


def translator(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """In the manner of GNMT (Wu and others, 2016): an LSTM reads in both directions, three more
    follow; the decoder's four look at what was read, here after their first layer."""
    nn = torch.nn
    words, width, length = (500, 64, 8) if quick else (32_000, 1024, 30)

    class Translator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
            self.both = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
            self.encoder = nn.LSTM(width, width, num_layers=3, batch_first=True)
            self.first = nn.LSTM(width, width, batch_first=True)
            self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
            self.decoder = nn.LSTM(2 * width, width, num_layers=3, batch_first=True)
            self.scores = nn.Linear(width, words)

        def forward(self, source: Any, target: Any) -> Any:
            read = self.encoder(self.both(self.source(source))[0])[0]
            state = self.first(self.target(target))[0]
            scores = torch.bmm(self.query(state), self.key(read).transpose(1, 2)) / width**0.5
            seen = torch.bmm(torch.softmax(scores, 2), read)
            return self.scores(self.decoder(torch.cat([state, seen], 2))[0])

    source = torch.randint(0, words, (batch, length), device=device)
    target = torch.randint(0, words, (batch, length + 1), device=device)
    wanted = target[:, 1:].reshape(-1)

    def loss(scores: Any) -> Any:
        return torch.nn.functional.cross_entropy(scores.reshape(-1, words), wanted)

    return Job(Translator(), (source, target[:, :-1].contiguous()), loss, "Adam")


def _training(job: Callable[..., Job], batch: int, dtype: Optional[str]) -> Case:
    def size(quick: bool) -> int:
        return 2 if quick else batch

    def make(torch: Any, device: str, quick: bool) -> Call:
        torch.manual_seed(0)
        model, inputs, loss, optimizer = job(torch, device, size(quick), quick)
        model.to(device)
        stepper = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)

        def step() -> None:
            stepper.zero_grad()
            mixed = torch.autocast(device, getattr(torch, dtype)) if dtype else None
            with mixed or contextlib.nullcontext():
                result = loss(model(*inputs))
            result.backward()
            stepper.step()

        return step

    return Case(make, size, "samples", dtype)


_BATCHES = {
    "digits network": (digits, 64),
    "ResNet-50": (resnet, 64),
    "AlexNet": (alexnet, 256),
    "VGG-19": (vgg, 32),
    "MobileNetV2": (mobilenet, 64),
    "NCF": (ncf, 65_536),
    "translator": (translator, 64),
}

MODELS = {
    f"{name}, {dtype or 'float32'}": _training(job, batch, dtype)
    for name, (job, batch) in _BATCHES.items()
    for dtype in (None, "bfloat16")
}
