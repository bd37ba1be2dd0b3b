"""A graph network: from a few nodes with labels, along the edges, it labels all the others.

    python -m treadle.run examples/graph_network.py            # 3 s on one core
    python -m treadle.run examples/graph_network.py --small    # 1 s

The graph is made here: communities whose members know each other more often than they know others,
each with a feature that says little by itself. A layer takes the mean over a node's neighbours,
weighted by the degrees of both (Kipf and Welling, 2017): a product with the adjacency of the graph,
a sparse matrix by rows. The same network without the edges shows what they are worth.

Reaches: accuracy >= 0.95 (small: >= 0.9), on nodes without a label
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import copy

import torch
import torch.nn.functional as F
from torch import nn


class GraphConvolution(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, nodes: torch.Tensor, links: torch.Tensor) -> torch.Tensor:
        """Nodes (N, inputs) and sparse links (N, N), from columns to rows, to (N, outputs)."""
        return links @ self.linear(nodes) + self.bias


class Network(nn.Module):
    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = GraphConvolution(inputs, hidden)
        self.second = GraphConvolution(hidden, classes)

    def forward(self, nodes: torch.Tensor, links: torch.Tensor) -> torch.Tensor:
        nodes = F.dropout(nodes, 0.2, self.training)
        nodes = F.dropout(F.relu(self.first(nodes, links)), 0.5, self.training)
        return self.second(nodes, links)


def communities(
    count: int, size: int, inside: float, outside: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features (N, 8), edges in both directions (2, E), and the community of each node (N,)."""
    labels = torch.arange(count).repeat_interleave(size)
    together = labels.unsqueeze(0) == labels.unsqueeze(1)
    chance = torch.where(together, inside, outside)
    one_way = torch.rand_like(chance).triu(diagonal=1).gt(1 - chance)
    edges = (one_way | one_way.t()).nonzero().t()
    centres = torch.randn(count, 8)
    return 0.5 * centres[labels] + torch.randn(len(labels), 8), edges, labels


def with_loops(edges: torch.Tensor, nodes: int) -> torch.Tensor:
    """The edges and one from each node to itself, of weights 1 / sqrt(degree * degree), by rows."""
    loops = torch.arange(nodes).expand(2, nodes)
    edges = torch.cat([edges, loops], dim=1)
    degrees = torch.bincount(edges[1], minlength=nodes)
    weights = (degrees[edges[0]] * degrees[edges[1]]).float().rsqrt()
    return torch.sparse_coo_tensor(edges.flip(0), weights, (nodes, nodes)).to_sparse_csr()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)

    count, size = (4, 50) if options.small else (6, 500)
    # About 10 neighbours inside and 3 outside, however large the graph is.
    nodes, edges, labels = communities(count, size, 10 / size, 3 / (size * (count - 1)))
    order = torch.randperm(len(labels))
    known, watched, rest = order.tensor_split([5 * count, 10 * count])
    print(
        f"{len(labels)} nodes in {count} communities, {edges.shape[1] // 2} edges, "
        f"{len(known)} labels"
    )

    results = {}
    for name, used in (("without edges", edges[:, :0]), ("with edges", edges)):
        links = with_loops(used, len(labels))
        network = Network(nodes.shape[1], 32, count)
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
        best, best_loss = copy.deepcopy(network.state_dict()), float("inf")
        for _ in range(100 if options.small else 200):
            network.train()
            optimizer.zero_grad()
            scores = network(nodes, links)
            F.cross_entropy(scores[known], labels[known]).backward()
            optimizer.step()

            # The weights kept are those that do best on nodes that are only watched.
            network.eval()
            with torch.no_grad():
                scores = network(nodes, links)
                loss = F.cross_entropy(scores[watched], labels[watched]).item()
            if loss < best_loss:
                best, best_loss = copy.deepcopy(network.state_dict()), loss
        network.load_state_dict(best)
        with torch.no_grad():
            found = network(nodes, links).argmax(dim=1)
        results[name] = (found[rest] == labels[rest]).double().mean().item()
        print(f"{name}: accuracy {results[name]:.4f}")
    print(f"accuracy {results['with edges']:.4f}")


if __name__ == "__main__":
    main()
