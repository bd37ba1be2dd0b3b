"""DistributedDataParallel on the CPU beside PyTorch's with gloo, where it is installed: a step of
training of ResNet-18, with and without communication, and the share of the communication that goes
on beside operators.

    ./dev bench data_parallel                     # two processes with one thread each: two minutes
    ./dev bench data_parallel --batch 4 --world 2 --rounds 9 --views

Each process of a library has its own model and a batch of images of 32x32. The libraries take
turns, so that what else the machine does meets both alike; while one works, the other's processes
wait. A row has the medians of the rounds, their ratio, and the quartiles of the ratios within a
round: below 1, Treadle is faster. The milliseconds of the clock are those of all processes, and
mean little on a machine that has other work. Those of the processor are the mean of the
processes, with their threads of communication. The step without communication is that in no_sync().

The share is that of a recorded step of Treadle: of the time in which a call of treadle.distributed
ran in a process, the part in which an operator of the program did.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib
import importlib.util
import multiprocessing
import socket
import statistics
import sys
import time
from multiprocessing.connection import Connection
from typing import Any, Dict, List, Tuple

from _networks import NETWORKS
from models import LIBRARIES, PYTORCH, TREADLE, imported

WARM = 3
RECORDED = 3
ROWS = {"step": "with averages", "alone": "without communication"}


class Setup:
    """The measurements."""

    def __init__(self, options: argparse.Namespace, port: int) -> None:
        self.batch, self.world, self.views = options.batch, options.world, options.views
        self.url = f"tcp://127.0.0.1:{port}"


class Trainer:
    """The model in one process."""

    def __init__(self, name: str, setup: Setup, rank: int) -> None:
        self.torch = torch = imported(name)
        torch.set_num_threads(1)
        torch.manual_seed(rank)
        dist = importlib.import_module(f"{LIBRARIES[name]}.distributed")
        dist.init_process_group("gloo", setup.url, world_size=setup.world, rank=rank)
        self.dist = dist
        self.job = NETWORKS["ResNet-18, 32x32"](torch, "cpu", setup.batch, False)
        self.model = torch.nn.parallel.DistributedDataParallel(
            self.job.model, gradient_as_bucket_view=setup.views
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.job.loss(self.model(*self.job.inputs)).backward()
        self.optimizer.step()

    def alone(self) -> None:
        with self.model.no_sync():
            self.step()

    def seconds(self, what: str) -> Tuple[float, float]:
        """The time of a step of all processes, by the clock and by this one's processor."""
        self.dist.barrier()
        begin, busy = time.perf_counter(), time.process_time()
        getattr(self, what)()
        self.dist.barrier()
        return time.perf_counter() - begin, time.process_time() - busy

    def share(self) -> float:
        """Of the time of communication in a recorded step, that beside operators; Treadle only."""
        with self.torch.profiler.profile() as prof:
            self.step()
        return prof.communication_overlap()


def serve(name: str, setup: Setup, rank: int, orders: Connection) -> None:
    trainer = Trainer(name, setup, rank)
    for what in iter(orders.recv, None):
        orders.send(trainer.share() if what == "share" else trainer.seconds(what))
    trainer.dist.destroy_process_group()


class Library:
    """The processes of a library."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        context = multiprocessing.get_context("spawn")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            setup = Setup(options, probe.getsockname()[1])
        self.orders, self.processes = [], []
        for rank in range(options.world):
            mine, others = context.Pipe()
            process = context.Process(target=serve, args=(name, setup, rank, others), daemon=True)
            process.start()
            others.close()
            self.orders.append(mine)
            self.processes.append(process)

    def ask(self, what: str) -> List[Any]:
        """The answers of the processes."""
        for order in self.orders:
            order.send(what)
        return [order.recv() for order in self.orders]

    def close(self) -> None:
        for order in self.orders:
            order.send(None)
        for process in self.processes:
            process.join()


def line_of(text: str, times: List[List[float]]) -> str:
    medians = [statistics.median(own) for own in times]
    line = f"{text:32s}" + "".join(f"{median:10.1f}" for median in medians)
    if len(medians) > 1:
        low, _, high = statistics.quantiles([a / b for a, b in zip(*times)], n=4)
        line += f"{medians[0] / medians[1]:10.2f}{f'{low:.2f} to {high:.2f}':>16s}"
    return line


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench data_parallel")
    parser.add_argument("--batch", type=int, default=8, help="images of each process")
    parser.add_argument("--world", type=int, default=2, help="processes of a library")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each library")
    parser.add_argument("--views", action="store_true", help="gradient_as_bucket_view=True")
    options = parser.parse_args(arguments)
    names = [TREADLE, *([PYTORCH] if importlib.util.find_spec("torch") else [])]
    libraries = {name: Library(name, options) for name in names}
    times: Dict[tuple, List[float]] = {}
    for turn in range(WARM + options.rounds):
        for row in ROWS:
            for name in names if turn % 2 else reversed(names):
                answers = libraries[name].ask(row)
                if turn >= WARM:
                    clock = max(answer[0] for answer in answers)
                    busy = statistics.mean(answer[1] for answer in answers)
                    times.setdefault((row, 0, name), []).append(clock * 1e3)
                    times.setdefault((row, 1, name), []).append(busy * 1e3)
    shares = [statistics.mean(libraries[TREADLE].ask("share")) for _ in range(RECORDED)]
    for library in libraries.values():
        library.close()
    columns = [*names, *(["ratio"] if len(names) > 1 else [])]
    print(f"{'ms of a step':32s}" + "".join(f"{column:>10s}" for column in columns))
    for row, text in ROWS.items():
        for place, kind in enumerate(("clock", "processor")):
            print(line_of(f"{text}, {kind}", [times[row, place, name] for name in names]))
    print(f"communication beside operators: {statistics.median(shares):.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
