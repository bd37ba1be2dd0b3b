"""Sparse matrices beside SciPy and PyTorch, in one run.

    ./dev bench sparse                 # one thread
    ./dev bench sparse --threads 2 --rounds 9 --only mm
    ./dev bench sparse --only to       # conversions between layouts

Times are medians of rounds in turn, in microseconds; the last columns are Treadle's time over the
other's: below 1, Treadle is faster. SciPy uses one thread. Matrices are float32, with entries
spread evenly ("uniform"), in rows of lengths by a power law ("power"), or near the diagonal
("band").
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib.util
from typing import Any, Callable, Dict, Iterator, Tuple

import numpy as np
import scipy.sparse
from _rounds import medians

import treadle

# Rows and columns, and the share of elements that are entries.
SHAPES = (
    (20, 10, 0.1),
    (300, 300, 0.03),
    (1000, 2000, 0.02),
    (4000, 4000, 0.01),
    (20000, 20000, 0.001),
)
MOST_ELEMENTS = 1 << 24  # of a strided matrix
WIDTH = 64  # columns of the strided factor


def matrix(n: int, m: int, density: float, kind: str, rng: Any) -> Any:
    """A matrix in SciPy's CSR format."""
    count = max(1, int(n * m * density))
    if kind == "uniform":
        rows = rng.integers(0, n, count)
    elif kind == "power":
        rows = np.minimum((rng.pareto(1.2, count) * n / 50).astype(np.int64), n - 1)
    else:
        rows = rng.integers(0, n, count)
    columns = rng.integers(0, m, count)
    if kind == "band":
        width = max(1, count // n)
        columns = np.clip(rows * m // n + rng.integers(-width, width + 1, count), 0, m - 1)
    values = rng.normal(size=count).astype(np.float32)
    made = scipy.sparse.coo_matrix((values, (rows, columns)), shape=(n, m)).tocsr()
    made.sum_duplicates()
    return made


def of(library: Any, a: Any) -> Any:
    """The matrix as a sparse_csr tensor of a library."""
    parts = (a.indptr.astype(np.int64), a.indices.astype(np.int64), a.data)
    return library.sparse_csr_tensor(*map(library.tensor, parts), size=a.shape)


def converted(tensor: Any, layout: str) -> Any:
    """The matrix in another layout: "csr", "csc", "coo" or "strided"."""
    if layout == "strided":
        return tensor.to_dense()
    return getattr(tensor, "to_sparse_" + layout)()


Calls = Dict[str, Callable[[], Any]]


def conversions(a: Any, tensors: Dict[str, Any]) -> Iterator[Tuple[str, Calls]]:
    pairs = (("csr", "csc"), ("csc", "csr"), ("csr", "coo"), ("csc", "coo"), ("coo", "csr"))
    pairs += ("coo", "csc"), ("csr", "strided"), ("csc", "strided"), ("coo", "strided")
    pairs += (("strided", "csr"), ("strided", "csc"), ("strided", "coo"))
    for source, target in pairs:
        if "strided" in (source, target) and a.shape[0] * a.shape[1] > MOST_ELEMENTS:
            continue
        given = a.toarray() if source == "strided" else a.asformat(source)

        def by_scipy(given: Any = given, target: str = target) -> Any:
            if target == "strided":
                return given.toarray()
            if isinstance(given, np.ndarray):
                return getattr(scipy.sparse, target + "_matrix")(given)
            return given.asformat(target, copy=True)

        yield (
            f"{source} to {target}",
            {
                "SciPy": by_scipy,
                **{
                    k: lambda s=converted(t, source), target=target: converted(s, target)
                    for k, t in tensors.items()
                },
            },
        )


def cases(a: Any, rng: Any, libraries: Dict[str, Any]) -> Iterator[Tuple[str, Calls]]:
    """Each operation, as a call of each library."""
    dense = rng.normal(size=(a.shape[1], WIDTH)).astype(np.float32)
    vector = dense[:, 0].copy()
    coo = a.tocoo()
    order = rng.permutation(coo.nnz)
    shuffled = (coo.row[order], coo.col[order])
    tensors = {name: of(library, a) for name, library in libraries.items()}
    yield (
        "mm by strided",
        {
            "SciPy": lambda: a @ dense,
            **{k: lambda s=s, d=libraries[k].tensor(dense): s @ d for k, s in tensors.items()},
        },
    )
    vectors = {k: library.tensor(vector) for k, library in libraries.items()}
    for layout in ("csr", "csc", "coo"):
        yield (
            f"{layout} mv",
            {
                "SciPy": lambda s=a.asformat(layout): s @ vector,
                **{
                    k: lambda s=converted(t, layout), d=vectors[k]: s @ d
                    for k, t in tensors.items()
                },
            },
        )
    turned = a.T.tocsr()
    yield (
        "mm by sparse",
        {
            "SciPy": lambda: a @ turned,
            **{k: lambda s=s, t=of(libraries[k], turned): s @ t for k, s in tensors.items()},
        },
    )
    yield from conversions(a, tensors)

    def coalesce_by_scipy() -> Any:
        made = scipy.sparse.coo_matrix((coo.data[order], shuffled), shape=a.shape)
        made.sum_duplicates()
        return made

    def coalesced(library: Any) -> Callable[[], Any]:
        indices = library.tensor(np.stack(shuffled).astype(np.int64))
        values = library.tensor(coo.data[order])
        return lambda: library.sparse_coo_tensor(indices, values, a.shape).coalesce()

    yield (
        "coalesce",
        {
            "SciPy": coalesce_by_scipy,
            **{k: coalesced(library) for k, library in libraries.items()},
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="operations whose name has this text")
    options = parser.parse_args()
    libraries: Dict[str, Any] = {"Treadle": treadle}
    treadle.set_num_threads(options.threads)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(options.threads)
        libraries["PyTorch"] = torch
    print(f"{'':14s}{'shape':>22s}{'entries':>9s}{'Treadle':>10s}{'/ SciPy':>9s}{'/ PyTorch':>10s}")
    for n, m, density in SHAPES:
        for kind in ("uniform", "power", "band"):
            rng = np.random.default_rng(0)
            a = matrix(n, m, density, kind, rng)
            for name, calls in cases(a, rng, libraries):
                if options.only not in name:
                    continue
                if name == "mm by sparse" and n > 4000 and kind == "power":
                    continue  # the product is nearly dense
                found = medians(calls, options.rounds)
                ours = found["Treadle"]
                ratios = "".join(
                    f"{ours / found[o]:{w}.2f}" if o in found else f"{'':{w}s}"
                    for o, w in (("SciPy", 9), ("PyTorch", 10))
                )
                shape = f"{n} x {m} {kind}"
                print(f"{name:14s}{shape:>22s}{a.nnz:9d}{ours * 1e6:10.1f}{ratios}", flush=True)


if __name__ == "__main__":
    main()
