"""A short contrastive training, and graphs to train on."""

import math

import numpy as np
import torch
from torch_geometric.data import Data

from augtree.data import from_arrays
from augtree.tasks import Contrastive


def task(**more):
    options = {"width": 4} if "model" not in more else {}
    asked = {"model": "cnn", "steps": 6, "batch_size": 16, "device": "cpu", "dim": 8, "options": options}
    return Contrastive(**{"optimizer": "sgd", "lr": 0.05, **asked, **more})


def graphs(count=48):
    """Rings (class 0) and stars (class 1) of several sizes, with node features that say nothing."""
    made = []
    for i in range(count):
        n = 6 + i % 5
        there = [(j, (j + 1) % n) for j in range(n)] if i % 2 == 0 else [(0, j) for j in range(1, n)]
        both = torch.tensor(there + [(b, a) for a, b in there]).T
        made.append(Data(x=torch.ones(n, 1), edge_index=both))
    split = ["train", "val", "test", "train"] * (count // 4)
    return from_arrays(made, np.arange(count) % 2, split=sorted(split), name="shapes")


def nt_xent_by_loops(one, two, temperature):
    """SimCLR's formula, word for word."""

    def cos(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    both = one + two
    n, out = len(one), []
    for i in range(n):
        terms = []
        for a, b in ((i, i + n), (i + n, i)):
            others = sum(math.exp(cos(both[a], both[k]) / temperature) for k in range(2 * n) if k != a)
            terms.append(-math.log(math.exp(cos(both[a], both[b]) / temperature) / others))
        out.append(sum(terms) / 2)
    return out
