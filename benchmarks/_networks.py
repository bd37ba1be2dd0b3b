"""The networks that are measured, each written once for the library that is named `torch`: vision
networks, language models, a filter of ratings, a translator.

    job = NETWORKS["ResNet-50"](torch, "cpu", 4, False)  # with a batch of 4; `quick`: a small one
    step = training(torch, job, "cpu", None)             # ... float32; "bfloat16" is under autocast
    step()

benchmarks/models.py runs them on the CPU, benchmarks/gpu/models.py on a device. No library is
imported here.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class Job(NamedTuple):
    """A model, its arguments, and the loss of what it returns."""

    model: Any
    inputs: tuple
    loss: Callable[[Any], Any]
    optimizer: str


def _classifier(
    torch: Any, device: str, model: Any, batch: int, side: int, classes: int = 1000
) -> Job:
    images = torch.randn(batch, 3, side, side, device=device)
    labels = torch.randint(0, classes, (batch,), device=device)
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


def resnet18(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """ResNet-18 (He and others, 2015) for images of 32x32: the first convolution is 3x3, and no
    pooling follows it."""
    nn = torch.nn
    layers, before = [*_normed(nn, 3, 64, 3, 1), nn.ReLU()], 64
    for after in (64, 128, 256, 512):
        for i in range(2):
            stride = 2 if i == 0 and after > 64 else 1
            body = [*_normed(nn, before, after, 3, stride), nn.ReLU()]
            body += _normed(nn, after, after, 3, 1)
            skip = _normed(nn, before, after, 1, stride) if before != after else None
            layers.append(_residual(nn, body, skip, nn.ReLU()))
            before = after
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))
    return _classifier(torch, device, model, batch, 32, 10)


def resnet50(torch: Any, device: str, batch: int, quick: bool) -> Job:
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


def _language(torch: Any, model: Any, text: Any, words: int, optimizer: str) -> Job:
    """Learns the next word at each place of the texts."""
    wanted = text[:, 1:].reshape(-1)

    def loss(scores: Any) -> Any:
        return torch.nn.functional.cross_entropy(scores.reshape(-1, words), wanted)

    return Job(model, (text[:, :-1],), loss, optimizer)


def gpt(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """Four layers of a GPT, 128 wide with four heads, on texts of 64 characters."""
    nn, functional = torch.nn, torch.nn.functional
    width, heads, length, characters = 128, 4, 64, 96

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            q, k, v = self.qkv(x).reshape(n, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(n, t, width))

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.Sequential(nn.LayerNorm(width), Attention())
            self.mlp = nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 4 * width),
                nn.GELU(),
                nn.Linear(4 * width, width),
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(x)
            return x + self.mlp(x)

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(characters, width)
            self.places = nn.Embedding(length, width)
            self.layers = nn.Sequential(*(Layer() for _ in range(4)), nn.LayerNorm(width))
            self.scores = nn.Linear(width, characters, bias=False)

        def forward(self, text: Any) -> Any:
            places = self.places(torch.arange(text.shape[1], device=device))
            return self.scores(self.layers(self.tokens(text) + places))

    text = torch.randint(0, characters, (batch, length + 1), device=device)
    return _language(torch, Gpt(), text, characters, "AdamW")


def lstm(torch: Any, device: str, batch: int, quick: bool) -> Job:
    """Two layers of an LSTM, 256 wide, on sentences of 32 of 2000 words."""
    nn = torch.nn
    width, words = 256, 2000

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
            self.scores = nn.Linear(width, words)

        def forward(self, sentences: Any) -> Any:
            return self.scores(self.lstm(self.words(sentences))[0])

    text = torch.randint(0, words, (batch, 33), device=device)
    return _language(torch, Words(), text, words, "Adam")


NETWORKS: dict[str, Callable[[Any, str, int, bool], Job]] = {
    "digits network": digits,
    "ResNet-18, 32x32": resnet18,
    "ResNet-50": resnet50,
    "AlexNet": alexnet,
    "VGG-19": vgg,
    "MobileNetV2": mobilenet,
    "GPT, 4 layers": gpt,
    "LSTM, 2 layers": lstm,
    "NCF": ncf,
    "translator": translator,
}


def _autocast(torch: Any, device: str, dtype: Optional[str]) -> Any:
    return torch.autocast(device, getattr(torch, dtype)) if dtype else contextlib.nullcontext()


def training(torch: Any, job: Job, device: str, dtype: Optional[str]) -> Callable[[], None]:
    """A step takes the gradients of the batch and moves the weights; with a dtype, forward and loss
    run under autocast."""
    job.model.to(device)
    stepper = getattr(torch.optim, job.optimizer)(job.model.parameters(), lr=1e-3)

    def step() -> None:
        stepper.zero_grad()
        with _autocast(torch, device, dtype):
            result = job.loss(job.model(*job.inputs))
        result.backward()
        stepper.step()

    return step


def inference(torch: Any, job: Job, device: str, dtype: Optional[str]) -> Callable[[], None]:
    """A step computes what the model returns for the batch, and records nothing for gradients."""
    job.model.to(device)
    job.model.eval()

    def step() -> None:
        with torch.no_grad(), _autocast(torch, device, dtype):
            job.model(*job.inputs)

    return step
