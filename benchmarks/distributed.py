"""Collective functions between processes of this machine beside PyTorch's, over Gloo, in one run.

    ./dev bench distributed                      # 2 and 4 processes
    ./dev bench distributed --ranks 2 --rounds 9 --only all_reduce

Times are medians of rounds in turn, in microseconds, of the first process; the last column is
Treadle's time over PyTorch's: below 1, Treadle is faster. Sizes are those of the tensor that a
process gives, in bytes of float32.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import socket
from datetime import timedelta
from typing import Any, Callable, Dict, List

from _rounds import medians

SIZES = [4, 1024, 32 << 10, 1 << 20, 16 << 20, 256 << 20]
LARGEST = {"all_gather": 64 << 20, "all_to_all": 64 << 20, "reduce_scatter": 64 << 20}


def functions(library: Any, dist: Any, size: int, ranks: int) -> Dict[str, Callable[[], Any]]:
    """A call of each function with a tensor of so many bytes."""
    count = size // 4
    whole = library.ones(count)
    part = library.ones(max(1, count // ranks))
    several = library.ones(part.numel() * ranks)
    other = library.empty(part.numel() * ranks)
    many = library.ones(count * ranks) if size <= LARGEST["all_gather"] else part
    return {
        "all_reduce": lambda: dist.all_reduce(whole, dist.ReduceOp.MAX),
        "all_reduce_sum": lambda: dist.all_reduce(whole.fill_(1)),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_gather": lambda: dist.all_gather_into_tensor(many, whole),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, several, dist.ReduceOp.MAX),
        "all_to_all": lambda: dist.all_to_all_single(other, several),
        "barrier": dist.barrier,
    }


def process(rank: int, ranks: int, ports: List[int], args: argparse.Namespace) -> None:
    """Measure in one process; the first prints."""
    import treadle

    libraries = {"Treadle": treadle}
    if importlib.util.find_spec("torch") is not None:
        import torch

        libraries["PyTorch"] = torch
    dists: Dict[str, Any] = {}
    for (name, library), port in zip(libraries.items(), ports):
        library.set_num_threads(1)
        dists[name] = importlib.import_module(f"{library.__name__}.distributed")
        url = f"tcp://127.0.0.1:{port}"
        dists[name].init_process_group("gloo", url, timedelta(minutes=5), ranks, rank)
    for size in args.sizes:
        calls = {n: functions(lib, dists[n], size, ranks) for n, lib in libraries.items()}
        for function in calls["Treadle"]:
            if args.only not in function or size > LARGEST.get(function, size):
                continue
            if function == "barrier" and size > args.sizes[0]:
                continue
            repeats = max(1, min(100, (8 << 20) // size))
            chosen = {name: each[function] for name, each in calls.items()}
            found = medians(chosen, args.rounds, repeats)
            if rank == 0:
                times = "".join(f"{seconds * 1e6:12.1f}" for seconds in found.values())
                ratio = found["Treadle"] / found["PyTorch"] if "PyTorch" in found else float("nan")
                print(f"{function:16s}{ranks:4d}{size:12d}{times}{ratio:8.2f}", flush=True)
    for dist in dists.values():
        dist.barrier()
        dist.destroy_process_group()


def free_ports(count: int) -> List[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only functions whose name contains this")
    args = parser.parse_args()
    print(
        f"{'function':16s}{'ranks':>4s}{'bytes':>11s}{'Treadle':>12s}{'PyTorch':>12s}{'ratio':>8s}"
    )
    context = multiprocessing.get_context("spawn")
    for ranks in args.ranks:
        ports = free_ports(2)
        children = [
            context.Process(target=process, args=(rank, ranks, ports, args))
            for rank in range(ranks)
        ]
        for child in children:
            child.start()
        for child in children:
            child.join()


if __name__ == "__main__":
    main()
