"""Whole models on the CPU beside PyTorch, where it is installed: samples per second and the memory
of a step, in training and in inference; the worst ratio first. With --fusion, Treadle with fusion
beside Treadle without.

    ./dev bench models                                        # float32, usual batches: 10 minutes
    ./dev bench models --all                                  # everything: an hour
    ./dev bench models --only vgg --threads 1 --mode train    # a part of it
    ./dev bench models --all --only lstm --no-memory
    ./dev bench models --fusion --only gpt --mode train

The models are those of _networks.py. A step of training takes the gradients of a batch and moves
the weights; one of inference is the model's call in eval() and under no_grad. bfloat16 means
autocast. Without --all, each option that is not given stands for float32 and the usual batch; both
modes and both numbers of threads are measured.

A library has a process of its own, so that their pools of threads do not meet; the two take turns,
so that what else the machine does meets both alike. At one thread the seconds are those of the
processor, which other programs do not lengthen much; at two they are those of the clock, and mean
little on a machine that has other work. The rates are medians of the rounds; the ratio is that of
the medians, and the quartiles are those of the ratios within a round: they say how far it can be
trusted. A ratio below 1 means that the first of the two is slower.

The memory is that of a new process for each library, model, mode, batch and dtype, with one thread:
it imports the library, makes the model and the batch, and runs two steps. The column has the
largest resident set during the two steps (ru_maxrss, after the kernel's counter was set back), less
the resident set before them. Gradients and the optimizer's state are part of it; the weights and
the library are not. Its ratio is the memory of the first of the two by that of the second: above
1, the first takes more.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import itertools
import multiprocessing
import os
import resource
import statistics
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Union

from _networks import NETWORKS, inference, training

LEAST_SECONDS, WARM_SECONDS, MEMORY_STEPS = 0.3, 0.3, 2
THREADS, MODES = (1, 2), ("train", "infer")
DTYPES, BATCHES = ("float32", "bfloat16"), ("usual", "1")

# Such that a step of training on two slow cores takes at most some two seconds.
USUAL = {
    "digits network": 64,
    "ResNet-18, 32x32": 8,
    "ResNet-50": 4,
    "AlexNet": 16,
    "VGG-19": 2,
    "MobileNetV2": 8,
    "GPT, 4 layers": 16,
    "LSTM, 2 layers": 16,
    "NCF": 16_384,
    "translator": 2,
}


class Setup(NamedTuple):
    """The network, batch, dtype, mode and number of threads of a row."""

    network: str
    batch: int
    dtype: str
    mode: str
    threads: int

    def __str__(self) -> str:
        shown = f"{self.network:18s}{self.mode:>6s}{self.batch:6d}{self.dtype:>10s}"
        return shown + f"{self.threads:8d}"


# The answer of a library: a number, or the text of an error.
Answer = Union[float, str]


# Each contender, and the library that it imports.
TREADLE, FUSED, PYTORCH = "Treadle", "fused", "PyTorch"
LIBRARIES = {TREADLE: "treadle", FUSED: "treadle", PYTORCH: "torch"}


def imported(name: str) -> Any:
    """A library; with treadle, `torch` means treadle too, for the example."""
    library = importlib.import_module(LIBRARIES[name])
    if LIBRARIES[name] == "treadle":
        importlib.import_module("treadle.run").install()
    if name == FUSED:
        library.fusion.enable()
    return library


def step_of(torch: Any, setup: Setup) -> Callable[[], Any]:
    """The step to be measured, on a batch of its own."""
    torch.manual_seed(0)
    torch.set_num_threads(setup.threads)
    job = NETWORKS[setup.network](torch, "cpu", setup.batch, False)
    make = training if setup.mode == "train" else inference
    return make(torch, job, "cpu", None if setup.dtype == "float32" else setup.dtype)


def rate(step: Callable[[], Any], setup: Setup, least: float) -> float:
    """Samples per second, of steps that take so many seconds, or of one that takes longer."""
    seen, start, busy = 0, time.perf_counter(), time.process_time()
    while seen == 0 or time.perf_counter() - start < least:
        step()
        seen += setup.batch
    taken = time.process_time() - busy if setup.threads == 1 else time.perf_counter() - start
    return seen / taken


def serve(name: str, orders: Connection) -> None:
    """Takes a setup and a number of seconds, and answers with the rate, until there are no more
    orders. One model is kept at a time."""
    torch = imported(name)
    kept, step = None, None
    for setup, least in iter(orders.recv, None):
        answer: Answer
        try:
            if kept != setup._replace(threads=0):
                step = None
                gc.collect()
                kept, step = setup._replace(threads=0), step_of(torch, setup)
            assert step is not None
            torch.set_num_threads(setup.threads)
            answer = rate(step, setup, least)
        except Exception as error:  # whatever it is, the other rows are measured
            kept, answer = None, f"{type(error).__name__}: {error}".splitlines()[0]
        orders.send(answer)


def resident() -> int:
    """The bytes that this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def weigh(name: str, orders: Connection) -> None:
    """Answers with the bytes that the steps of a setup take, in this process, which is new."""
    torch = imported(name)
    answer: Answer
    try:
        step = step_of(torch, orders.recv())
        gc.collect()
        # From here on ru_maxrss is what the steps reach, not what making the model did.
        Path("/proc/self/clear_refs").write_text("5")
        before = resident()
        for _ in range(MEMORY_STEPS):
            step()
        answer = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 - before
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".splitlines()[0]
    orders.send(answer)


class Process:
    """A library in a process of its own, which answers orders."""

    def __init__(self, target: Callable[[str, Connection], None], name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.orders, others = context.Pipe()
        self.process = context.Process(target=target, args=(name, others), daemon=True)
        self.process.start()
        others.close()

    def ask(self, order: Any) -> Answer:
        try:
            self.orders.send(order)
            return self.orders.recv()
        except (EOFError, OSError):
            self.process.join()
            return "its process ended"

    def close(self) -> None:
        try:
            self.orders.send(None)
        except OSError:
            pass
        self.process.join()


@dataclass
class Row:
    """The measurements of a setup; lists have one for each library."""

    setup: Setup
    rates: list[list[float]]  # by round
    memory: list[Optional[float]]
    errors: list[str] = field(default_factory=list)

    @property
    def medians(self) -> list[Optional[float]]:
        return [statistics.median(own) if own else None for own in self.rates]

    @property
    def ratio(self) -> Optional[float]:
        own = self.medians
        return own[0] / own[1] if len(own) > 1 and own[0] and own[1] else None

    def __str__(self) -> str:
        line = str(self.setup) + "".join(
            f"{'':>10s}" if own is None else f"{own:10.1f}" for own in self.medians
        )
        if len(self.rates) > 1:
            line += f"{'':>24s}" if self.ratio is None else self._compared(self.ratio)
        memory = [None if used is None else used / 1e6 for used in self.memory]
        line += "".join(f"{'':>9s}" if used is None else f"{used:9.1f}" for used in memory)
        if len(memory) > 1 and memory[0] and memory[1] and memory[1] > 0:
            line += f"{memory[0] / memory[1]:7.2f}"
        return line

    def _compared(self, ratio: float) -> str:
        pairs = [a / b for a, b in zip(*self.rates)]
        low, _, high = statistics.quantiles(pairs, n=4) if len(pairs) > 1 else pairs * 3
        return f"{ratio:8.2f}{f'{low:.2f} to {high:.2f}':>16s}"


class Measurement:
    """The libraries, and what was measured with them."""

    def __init__(self, names: list[str], rounds: int, memory: bool) -> None:
        self.names, self.rounds, self.memory = names, rounds, memory
        self.libraries = [Process(serve, name) for name in names]
        self.weights: dict[tuple[str, Setup], Answer] = {}

    def measure(self, setup: Setup) -> Row:
        row = Row(setup, [[] for _ in self.names], [None for _ in self.names])
        for turn in range(self.rounds + 1):
            seconds = LEAST_SECONDS if turn else WARM_SECONDS
            for i, name in enumerate(self.names):
                if row.errors:
                    break
                answer = self.libraries[i].ask((setup, seconds))
                if isinstance(answer, str):
                    row.errors.append(f"{name}: {answer}")
                    if not self.libraries[i].process.is_alive():
                        self.libraries[i] = Process(serve, name)
                elif turn:
                    row.rates[i].append(answer)
        for i, name in enumerate(self.names):
            if self.memory and not row.errors:
                weight = self.weight(name, setup._replace(threads=1))
                if isinstance(weight, str):
                    row.errors.append(f"{name}, memory: {weight}")
                else:
                    row.memory[i] = weight
        return row

    def weight(self, name: str, setup: Setup) -> Answer:
        """The bytes of two steps."""
        if (name, setup) not in self.weights:
            process = Process(weigh, name)
            self.weights[name, setup] = process.ask(setup)
            process.close()
        return self.weights[name, setup]

    def close(self) -> None:
        for library in self.libraries:
            library.close()


def chosen(options: argparse.Namespace) -> list[Setup]:
    """The rows that the options choose."""

    def values(given: Any, every: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        return (given,) if given else every if options.all else every[:count]

    return [
        Setup(name, USUAL[name] if batch == "usual" else 1, dtype, mode, threads)
        for name, batch, dtype, mode, threads in itertools.product(
            [name for name in NETWORKS if options.only.lower() in name.lower()],
            values(options.batch, BATCHES, 1),
            values(options.dtype, DTYPES, 1),
            values(options.mode, MODES, 2),
            values(options.threads, THREADS, 2),
        )
    ]


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench models")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--threads", type=int, help="one number of threads (default: 1 and 2)")
    parser.add_argument("--mode", choices=MODES, help="one of them (default: both)")
    parser.add_argument("--dtype", choices=DTYPES, help="float32 (the default), or autocast")
    parser.add_argument("--batch", choices=BATCHES, help="usual (the default), or a batch of 1")
    parser.add_argument("--all", action="store_true", help="both dtypes and both batches, too")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each library")
    parser.add_argument(
        "--fusion", action="store_true", help="Treadle with fusion beside Treadle without"
    )
    parser.add_argument("--no-memory", action="store_true", help="leave the memory out")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    setups = chosen(options)
    if not setups:
        print(f"no model's name contains '{options.only}': {', '.join(NETWORKS)}", file=sys.stderr)
        return 2
    names = [TREADLE, *([PYTORCH] if importlib.util.find_spec("torch") else [])]
    if options.fusion:
        names = [FUSED, TREADLE]
    measurement = Measurement(names, options.rounds, not options.no_memory)
    rows = []
    for i, setup in enumerate(setups):
        print(f"{i + 1}/{len(setups)} {setup}", file=sys.stderr, flush=True)
        rows.append(measurement.measure(setup))
    measurement.close()

    print("\nsamples per second on the CPU; MB that two steps take; the worst ratio first")
    header = f"{'':18s}{'mode':>6s}{'batch':>6s}{'dtype':>10s}{'threads':>8s}{names[0]:>10s}"
    if len(names) > 1:
        header += f"{names[1]:>10s}{'ratio':>8s}{'quartiles':>16s}{'MB':>9s}{names[1]:>9s}"
        header += f"{'ratio':>7s}"
    else:
        header += f"{'MB':>9s}"
    print(header)
    for row in sorted(rows, key=lambda row: float("inf") if row.ratio is None else row.ratio):
        print(row)
        for error in row.errors:
            print(f"    {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
