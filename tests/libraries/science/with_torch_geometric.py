"""torch_geometric: networks on graphs."""

# SPDX-License-Identifier: Apache-2.0

import torch
from torch_geometric import nn, transforms, utils
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from uses import descend, draw, main, settle, use

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 0], [1, 0, 2, 1, 4, 3, 0, 4]])


@use("train a graph convolution on nodes")
def nodes():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.GCNConv(4, 8), nn.GATConv(8, 3, heads=2, concat=False)

        def forward(self, x, edges):
            return self.two(self.one(x, edges).relu(), edges)

    model, x = settle(Net()), draw(5, 4)
    y = torch.tensor([0, 1, 2, 0, 1])
    return descend(model, lambda: torch.nn.functional.cross_entropy(model(x, EDGES), y))


@use("eight more layers")
def layers():
    x, more = draw(5, 4), draw(8, 2)
    made = [
        nn.SAGEConv(4, 3),
        nn.GINConv(torch.nn.Linear(4, 3)),
        nn.GraphConv(4, 3),
        nn.TAGConv(4, 3),
        nn.ChebConv(4, 3, 2),
        nn.TransformerConv(4, 3),
        nn.GATv2Conv(4, 3),
    ]
    edge = settle(nn.NNConv(4, 3, torch.nn.Linear(2, 12)))
    return [*(settle(layer)(x, EDGES) for layer in made), edge(x, EDGES, more)]


@use("batches of graphs, pooling, transforms")
def batches():
    graphs = [Data(x=draw(5, 4), edge_index=EDGES, y=torch.tensor([i])) for i in range(4)]
    batch = Batch.from_data_list(graphs)
    loaded = next(iter(DataLoader(graphs, batch_size=4)))
    changed = transforms.Compose([transforms.AddSelfLoops(), transforms.NormalizeFeatures()])
    return [
        nn.global_mean_pool(batch.x, batch.batch),
        nn.global_max_pool(batch.x, batch.batch),
        loaded.num_graphs,
        changed(graphs[0].clone()).x,
        utils.to_dense_adj(EDGES),
        utils.degree(EDGES[0]),
        utils.softmax(draw(8), EDGES[0]),
    ]


@use("a heterogeneous graph")
def kinds():
    data = HeteroData()
    data["user"].x, data["item"].x = draw(5, 4), draw(5, 6)
    data["user", "buys", "item"].edge_index = EDGES
    layer = nn.HeteroConv({("user", "buys", "item"): nn.SAGEConv((4, 6), 3)})
    settle(layer)
    return layer(data.x_dict, data.edge_index_dict)["item"]


if __name__ == "__main__":
    main("torch_geometric")
