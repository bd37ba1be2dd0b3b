"""Training of whole models on the CPU, float32: samples per second at one and at two threads,
beside PyTorch where it is installed.

Each model is written once, for either library. A library has a process of its own, so that their
pools of threads do not meet; the two take turns, so that what else the machine does meets both
alike. At one thread the seconds are those of the processor, which other programs do not lengthen
much; at two they are those of the clock, and mean little on a machine that has other work. Medians
of repetitions; the ratio is that of medians, and the spread says how far it can be trusted: the
quartiles of the ratios of the repetitions that followed each other.

    ./dev bench models
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Callable

REPEATS, LEAST_SECONDS, WARM_SECONDS = 5, 0.3, 0.3
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# A step of training, and how many samples it learns from.
Training = tuple[Callable[[], Any], int]


def training(torch: Any, model: Any, inputs: Any, targets: Any, optimizer: str) -> Training:
    """Steps on one batch, by the cross entropy of the scores in the last dimension."""
    stepper = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)
    loss_function = torch.nn.CrossEntropyLoss()

    def step() -> None:
        stepper.zero_grad()
        scores = model(inputs)
        loss_function(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1)).backward()
        stepper.step()

    return step, len(inputs)


def digits(torch: Any) -> Training:
    """The network of examples/digits.py, in its batches."""
    sys.path.insert(0, str(EXAMPLES))
    from digits import Net

    images, labels = torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,))
    return training(torch, Net(channels=24), images, labels, "Adam")


def resnet(torch: Any) -> Training:
    """ResNet-18 (He and others, "Deep residual learning for image recognition", 2015) for images of
    32x32: the first convolution is 3x3, and no pooling follows it."""
    nn = torch.nn

    def convolution(before: int, after: int, side: int, stride: int = 1) -> list[Any]:
        layer = nn.Conv2d(before, after, side, stride, side // 2, bias=False)
        return [layer, nn.BatchNorm2d(after)]

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *convolution(before, after, 3, stride),
                nn.ReLU(),
                *convolution(after, after, 3),
            )
            same = before == after and stride == 1
            self.skip = nn.Sequential(*([] if same else convolution(before, after, 1, stride)))
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.skip(x))

    layers, before = [*convolution(3, 64, 3), nn.ReLU()], 64
    for after in (64, 128, 256, 512):
        layers += [Block(before, after, 1 if after == before else 2), Block(after, after, 1)]
        before = after
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))
    images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))
    return training(torch, model, images, labels, "SGD")


def gpt(torch: Any) -> Training:
    """Four layers of a GPT, 128 wide with four heads, on 16 texts of 64 characters."""
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
            places = self.places(torch.arange(text.shape[1]))
            return self.scores(self.layers(self.tokens(text) + places))

    text = torch.randint(0, characters, (16, length + 1))
    return training(torch, Gpt(), text[:, :-1], text[:, 1:], "AdamW")


def lstm(torch: Any) -> Training:
    """Two layers of an LSTM, 256 wide, on 16 sentences of 32 of 2000 words."""
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

    sentences = torch.randint(0, words, (16, 33))
    return training(torch, Words(), sentences[:, :-1], sentences[:, 1:], "Adam")


MODELS = {
    "digits network": digits,
    "ResNet-18, 32x32": resnet,
    "GPT, 4 layers": gpt,
    "LSTM, 2 layers": lstm,
}


def imported(name: str) -> Any:
    """A library; with treadle, `torch` means treadle too, for the example."""
    library = importlib.import_module(name)
    if name == "treadle":
        importlib.import_module("treadle.run").install()
    return library


def serve(name: str, orders: Connection) -> None:
    """Takes a model, a number of threads and one of seconds, trains for that long, and answers with
    the samples per second, until there are no more orders."""
    library = imported(name)
    library.manual_seed(0)
    made: dict[str, Training] = {}
    while (order := orders.recv()) is not None:
        model, threads, least = order
        library.set_num_threads(threads)
        if model not in made:
            made[model] = MODELS[model](library)
        step, samples = made[model]
        seen, start = 0, time.perf_counter()
        busy = time.process_time()
        while seen == 0 or time.perf_counter() - start < least:
            step()
            seen += samples
        taken = time.process_time() - busy if threads == 1 else time.perf_counter() - start
        orders.send(seen / taken)


class Library:
    """A library in a process of its own."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.orders, others = context.Pipe()
        self.process = context.Process(target=serve, args=(name, others), daemon=True)
        self.process.start()

    def run(self, model: str, threads: int, seconds: float) -> float:
        """Samples per second, in a training of so many seconds, or one step if that is longer."""
        self.orders.send((model, threads, seconds))
        return self.orders.recv()

    def close(self) -> None:
        self.orders.send(None)
        self.process.join()


def measure(libraries: list[Library], model: str, threads: int) -> list[list[float]]:
    """Samples per second of each library, by repetition."""
    for library in libraries:
        library.run(model, threads, WARM_SECONDS)
    rates: list[list[float]] = [[] for _ in libraries]
    for _ in range(REPEATS):
        for library, own in zip(libraries, rates):
            own.append(library.run(model, threads, LEAST_SECONDS))
    return rates


def main() -> None:
    names = ["treadle", *(["torch"] if importlib.util.find_spec("torch") else [])]
    libraries = [Library(name) for name in names]
    print("\nsamples per second, training on the CPU, float32")
    header = f"{'':18s}{'threads':>8s}{'Treadle':>10s}"
    if len(names) > 1:
        header += f"{'PyTorch':>10s}{'ratio':>8s}{'quartiles':>16s}"
    print(header, flush=True)
    for model in MODELS:
        for threads in (1, 2):
            rates = measure(libraries, model, threads)
            medians = [statistics.median(own) for own in rates]
            line = f"{model:18s}{threads:8d}" + "".join(f"{rate:10.1f}" for rate in medians)
            if len(names) > 1:
                low, _, high = statistics.quantiles((a / b for a, b in zip(*rates)), n=4)
                line += f"{medians[0] / medians[1]:8.2f}{f'{low:.2f} to {high:.2f}':>16s}"
            print(line, flush=True)
    for library in libraries:
        library.close()


if __name__ == "__main__":
    main()
