"""The time of communication: measured on links of a known latency and rate, and predicted.

    ./dev bench communication                             # measure at 2 to 16 ranks, and predict
    ./dev bench communication --ranks 2 4 --repeats 3
    ./dev bench communication --plain                     # over the loopback device, not shaped
    ./dev bench communication --predict                   # predict only

Latency and rate are fitted to single messages between two ranks, the time for each message to small
all_gathers. With these three numbers costs.py predicts the rest. Errors are (predicted - measured)
/ measured. Shaped links need root, see links.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from communication_model import costs, links, training

RANK = Path(__file__).parent / "communication_model" / "rank.py"
SIZES = (4096, 65536, 1 << 18)
MESSAGES = (4, 4096, 16384, 65536, 1 << 18)


def cases(ranks: int) -> List[Tuple[str, int]]:
    """The measurements at so many ranks."""
    found = [("send", size) for size in MESSAGES] if ranks == 2 else []
    found += [(name, size) for name in costs.OF_ENGINE if name != "send" for size in SIZES]
    found = [case for case in found if case[0] != "barrier" or case[1] == SIZES[0]]
    power = ranks & (ranks - 1) == 0
    for name in costs.OF_ALGORITHMS:
        if ranks > 2 and (power or not name.startswith("halving")):
            found += [(name, size) for size in SIZES]
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(ranks: int, repeats: int, network: Optional[links.Network]) -> Dict[str, Any]:
    """Run the ranks; what rank 0 prints. RuntimeError if one fails."""
    address = network.address(0) if network else "127.0.0.1"
    port = 29500 if network else _free_port()
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if network:
        environment["GLOO_SOCKET_IFNAME"] = links.DEVICE
    processes = []
    try:
        for rank in range(ranks):
            words = [sys.executable, str(RANK), str(rank), str(ranks), address, str(port)]
            words += [json.dumps(cases(ranks)), str(repeats)]
            command = network.command(rank, words) if network else words
            pipe = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            processes.append(subprocess.Popen(command, stdout=pipe, env=environment, text=True))
        output = processes[0].communicate(timeout=600)[0]
        if any(process.wait(60) for process in processes):
            raise RuntimeError(f"communication: expected {ranks} ranks to end well")
    finally:
        for process in processes:
            process.kill()
    return json.loads(output)


def _print(head: List[str], rows: List[List[str]]) -> None:
    print(f"| {' | '.join(head)} |")
    print(f"|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def compare(found: Dict[int, Dict[str, Any]]) -> costs.Link:
    """Fit a link to the measurements, print how well it predicts them."""
    single = [(size, seconds) for name, size, seconds in found[2]["cases"] if name == "send"]
    link = costs.fit(single)
    small = [
        (ranks, size, seconds)
        for ranks, result in found.items()
        for name, size, seconds in result["cases"]
        if name == "all_gather" and size == SIZES[0]
    ]
    link = costs.fit_per_message(link, small)
    # A line through noisy times may have no slope.
    speed = 1e-6 / link.per_byte if link.per_byte > 0 else float("inf")
    print(
        f"latency {1e3 * link.latency:.3f} ms, {speed:.1f} MB/s, "
        f"{1e6 * link.per_message:.1f} us for each message\n"
    )
    rows, errors = [], []
    for ranks, result in found.items():
        for name, size, seconds in result["cases"]:
            cost = {**costs.OF_ENGINE, **costs.OF_ALGORITHMS}[name]
            predicted = cost(link, ranks, size)
            error = predicted / seconds - 1
            errors.append(abs(error))
            rows.append(
                [
                    name,
                    str(ranks),
                    str(size),
                    f"{1e3 * seconds:.2f}",
                    f"{1e3 * predicted:.2f}",
                    f"{100 * error:+.0f} %",
                ]
            )
    rows.sort(key=lambda row: (row[0], int(row[1]), int(row[2])))
    _print(["call", "ranks", "bytes", "measured, ms", "predicted, ms", "error"], rows)
    print(
        f"error: median {100 * statistics.median(errors):.0f} %, "
        f"largest {100 * max(errors):.0f} %, of {len(errors)}\n"
    )
    return link


def predict(requests: float) -> None:
    """Print what steps cost on many ranks, and what grows."""
    buckets = (1e6, 25e6, 100e6)
    head = ["model", "ranks", *(f"buckets of {b / 1e6:.0f} MB" for b in buckets), "direct, 25 MB"]
    for name, link in (("10 Gb/s", training.ETHERNET), ("400 Gb/s", training.FABRIC)):
        print(f"{name}: share of a step that is computation, with the best algorithm\n")
        _print(head, training.table(link, (training.RESNET50, training.GPT), buckets))
    rows = []
    for ranks in (8, 64, 512, 1024, 4096):
        grown = training.limits(ranks, requests)
        rows.append(
            [
                f"{ranks:,}",
                *(f"{value:,.0f}" for value in list(grown.values())[:4]),
                f"+{100 * grown['slowest rank']:.1f} %",
            ]
        )
    print(f"the store answers {requests:,.0f} requests a second\n")
    _print(["ranks", *training.limits(8, requests)], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--latency", type=float, default=0.005, help="seconds, one way")
    parser.add_argument("--rate", type=float, default=2.5e6, help="bytes per second")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="do not shape the links")
    parser.add_argument("--predict", action="store_true", help="measure nothing")
    parser.add_argument(
        "--requests", type=float, default=1400.0, help="that the store answers a second"
    )
    options = parser.parse_args()
    if options.predict:
        predict(options.requests)
        return 0
    reason = links.why_not()
    if reason and not options.plain:
        print(f"links are not shaped: {reason}\n")
    is_plain = options.plain or bool(reason)
    found: Dict[int, Dict[str, Any]] = {}
    for ranks in sorted({2, *options.ranks}):
        shape = links.shaped(ranks, options.latency, options.rate)
        with contextlib.nullcontext() if is_plain else shape as network:
            found[ranks] = measure(ranks, options.repeats, network)
        print(f"{ranks} ranks: connected in {found[ranks]['start']:.2f} s", file=sys.stderr)
    compare(found)
    predict(found[max(found)]["requests"] if is_plain else options.requests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
