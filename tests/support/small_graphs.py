"""Graphs that are quickly trained on, tasks for them, and plain training to compare with."""

import numpy as np
import torch
from torch_geometric.data import Data

from augtree.data import from_arrays
from augtree.tasks import Classification
from support.contrastive import task as contrastive_task


def encoder_task(**more):
    """Contrastive training of a small GIN."""
    options = {"layers": 2, "hidden": 4}
    return contrastive_task(**{"model": "gin", "options": options, "batch_size": 8, "dim": 4, **more})


def classifier_task(**more):
    """Supervised training of a small GIN."""
    asked = {"model": "gin", "options": {"layers": 2, "hidden": 4}, "steps": 6, "batch_size": 8, "lr": 0.05}
    return Classification(**{**asked, "device": "cpu", **more})


def marked_rings(count=48):
    """Rings of plain and blank nodes (class 0), or with one marked node besides (class 1), which the label needs."""
    made, rng = [], np.random.default_rng(0)
    for i in range(count):
        nodes = 5 + i // 2 % 4
        x, around = torch.tensor([[1.0, 0.0]]).repeat(nodes, 1), torch.arange(nodes)
        order = rng.permutation(nodes)
        x[order[: rng.integers(0, 3)]] = 0
        if i % 2:
            x[order[-1]] = torch.tensor([0.0, 1.0])
        edges = torch.stack([around, (around + 1) % nodes])
        made.append(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1)))
    return from_arrays(made, np.arange(count) % 2, split=["train"] * (count - 8) + ["val"] * 8, name="marked rings")


def paths(labels, groups):
    """A path of four nodes for each label and group, which tell its number; the first once more, to judge."""
    edges = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
    made = [Data(x=torch.full((4, 1), float(i)), edge_index=edges) for i in range(len(labels) + 1)]
    labels, groups = np.concatenate([labels, labels[:1]]), np.concatenate([groups, groups[:1]])
    return from_arrays(made, labels, groups=groups, split=["train"] * (len(made) - 1) + ["val"], name="paths")
