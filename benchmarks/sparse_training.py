"""Training with sparse tensors beside PyTorch, in one run: a step of each program.

    ./dev bench sparse_training                      # one thread and two
    ./dev bench sparse_training --threads 2 --rounds 40 --only graph

A graph network of two layers multiplies by the adjacency of its graph, a sparse_csr matrix. A
recommender has tables of users' and films' vectors with sparse gradients, whose rows alone a step
writes: `nn.EmbeddingBag` over the films that a user saw, `nn.Embedding` for the film in question.

Both libraries begin with the same numbers and get the same batches. Before they are timed, the
losses of 20 steps must agree to 1e-5. Times are medians of rounds in turn, in milliseconds; the
last column is Treadle's time over PyTorch's: below 1, Treadle is faster.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib.util
import warnings
from typing import Any, Callable, Dict

import numpy as np
from _rounds import medians

import treadle

Step = Callable[[], Any]  # a step of training; it returns the loss


def begin(model: Any, library: Any, seed: int) -> None:
    """Parameters of the same small numbers in both libraries."""
    rng = np.random.default_rng(seed)
    with library.no_grad():
        for parameter in model.parameters():
            numbers = 0.1 * rng.standard_normal(tuple(parameter.shape))
            parameter.copy_(library.tensor(numbers.astype(np.float32)))


# ---- the graph network ----


def adjacency(nodes: int, neighbours: int, rng: Any) -> Any:
    """Offsets, columns and values of a graph with loops, by 1 / sqrt(degree * degree)."""
    ends = rng.integers(0, nodes, (nodes * neighbours // 2, 2))
    loops = np.arange(nodes)
    rows = np.concatenate([ends[:, 0], ends[:, 1], loops])
    columns = np.concatenate([ends[:, 1], ends[:, 0], loops])
    pairs = np.unique(rows * nodes + columns)
    rows, columns = pairs // nodes, pairs % nodes
    degrees = np.bincount(rows, minlength=nodes)
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    values = 1 / np.sqrt(degrees[rows] * degrees[columns])
    return offsets, columns, values.astype(np.float32)


def graph_network(library: Any, nodes: int, neighbours: int, width: int) -> Step:
    nn, functional = library.nn, library.nn.functional
    rng = np.random.default_rng(0)
    parts = map(library.tensor, adjacency(nodes, neighbours, rng))
    links = library.sparse_csr_tensor(*parts, size=(nodes, nodes))
    inputs = library.tensor(rng.standard_normal((nodes, width)).astype(np.float32))
    labels = library.tensor(rng.integers(0, 8, nodes))

    class Network(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(width, width), nn.Linear(width, 8)

        def forward(self, x: Any) -> Any:
            x = functional.relu(links @ self.first(x))
            return links @ self.second(x)

    network = Network()
    begin(network, library, 1)
    optimizer = library.optim.Adam(network.parameters(), lr=0.01)

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


# ---- the recommender ----


def recommender(library: Any, films: int, width: int, batch: int, of_tables: str) -> Step:
    nn, functional = library.nn, library.nn.functional
    rng = np.random.default_rng(2)

    class Model(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.seen = nn.EmbeddingBag(films, width, mode="mean", sparse=True)
            self.film = nn.Embedding(films, width, sparse=True)
            self.read = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

        def forward(self, seen: Any, offsets: Any, film: Any) -> Any:
            both = library.cat([self.seen(seen, offsets), self.film(film)], dim=1)
            return self.read(both).squeeze(1)

    model = Model()
    begin(model, library, 3)
    tables = [model.seen.weight, model.film.weight]
    optimizers = [
        getattr(library.optim, of_tables)(tables, lr=0.01),
        library.optim.Adam(model.read.parameters(), lr=0.01),
    ]
    # A few films are seen by many.
    ranks = np.minimum((rng.pareto(1.0, (8, batch * 20)) * films / 100), films - 1)
    batches = []
    for seen in ranks.astype(np.int64):
        lengths = rng.multinomial(seen.size, np.ones(batch) / batch)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        ratings = rng.standard_normal(batch).astype(np.float32)
        batches.append([*map(library.tensor, (seen, starts, seen[starts % seen.size], ratings))])
    number = 0

    def step() -> Any:
        nonlocal number
        seen, starts, film, ratings = batches[number % len(batches)]
        number += 1
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = functional.mse_loss(model(seen, starts, film), ratings)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    return step


PROGRAMS: Dict[str, Callable[[Any], Step]] = {
    "graph of 3,000 nodes": lambda library: graph_network(library, 3000, 16, 64),
    "graph of 20,000 nodes": lambda library: graph_network(library, 20_000, 16, 64),
    "recommender, SGD": lambda library: recommender(library, 20_000, 32, 256, "SGD"),
    "recommender, Adagrad": lambda library: recommender(library, 20_000, 32, 256, "Adagrad"),
    "recommender, SparseAdam": lambda library: recommender(library, 20_000, 32, 256, "SparseAdam"),
    "recommender, SparseAdam, 200,000 films": lambda library: recommender(
        library, 200_000, 64, 512, "SparseAdam"
    ),
}


def require_same_losses(name: str, steps: Dict[str, Step], count: int = 20) -> None:
    losses = {
        library: [float(step().detach()) for _ in range(count)] for library, step in steps.items()
    }
    wanted = losses["PyTorch"]
    apart = max(abs(a / b - 1) for a, b in zip(losses["Treadle"], wanted))
    if not apart <= 1e-5:
        raise SystemExit(f"{name}: the losses differ by {apart:.1e}, relatively")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # PyTorch calls sparse_csr a beta
    libraries: Dict[str, Any] = {"Treadle": treadle}
    if importlib.util.find_spec("torch"):
        import torch

        libraries["PyTorch"] = torch
    print(f"{'':40s}{'threads':>8s}{'Treadle':>10s}{'PyTorch':>10s}{'ratio':>7s}")
    for threads in options.threads:
        for library in libraries.values():
            library.set_num_threads(threads)
        for name, make in PROGRAMS.items():
            if options.only not in name:
                continue
            steps = {key: make(library) for key, library in libraries.items()}
            if len(steps) > 1:
                require_same_losses(name, steps)
            found = medians(steps, options.rounds, repeats=5)
            line = f"{name:40s}{threads:8d}{found['Treadle'] * 1e3:10.2f}"
            if "PyTorch" in found:
                line += f"{found['PyTorch'] * 1e3:10.2f}{found['Treadle'] / found['PyTorch']:7.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
