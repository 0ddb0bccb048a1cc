"""The similarity of two groups' features: the paper's s(i, j), from the covariances of last-layer features."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from augtree.data import Dataset
from augtree.data.groups import nodes_and_degrees
from augtree.errors import TaskError
from augtree.tasks.contrastive import ContrastiveTrainer
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State

Floats = NDArray[np.float64]
SHARE = 0.99
"""The rank of a covariance is where its singular values reach this share of their sum."""


def similarity(one: Floats, other: Floats) -> float:
    """s(i, j) of two groups' features [samples, features]: 1 for the same direction, 0 where nothing is shared.

    >>> similarity(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[3.0, 0.0]]))
    1.0
    >>> similarity(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    0.0
    """
    a, b = root(one), root(other)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.linalg.norm(a.T @ b)) / lengths if lengths > 0 else 0.0


def root(features: Floats) -> Floats:
    """U D^(1/2) of the covariance X^T X = U D U^T, cut at the rank that has 99 % of the singular values."""
    _, singular, directions = np.linalg.svd(features, full_matrices=False)
    eigenvalues = singular**2
    if not eigenvalues.sum() > 0:
        return np.zeros((features.shape[1], 1))
    rank = int(np.searchsorted(np.cumsum(eigenvalues), SHARE * eigenvalues.sum())) + 1
    return np.asarray(directions[:rank].T * singular[:rank])


def between(features: Mapping[str, Floats]) -> dict[str, dict[str, float]]:
    """The similarity of every pair of groups."""
    return {one: {other: similarity(features[one], features[other]) for other in features} for one in features}


def average(table: Mapping[str, Mapping[str, float]]) -> float | None:
    """The mean over pairs of different groups."""
    found = [table[one][other] for one, other in combinations(table, 2)]
    return float(np.mean(found)) if found else None


def features_by_group(trainer: Trainer, state: State, split: str) -> dict[str, Floats]:
    """The last layer's inputs for the samples of each group, without augmentation."""
    data = trainer.data
    rows = {group: data.indices(split, group) for group in data.group_names}
    return {group: features(trainer, state, found) for group, found in rows.items() if len(found)}


def features(trainer: Trainer, state: State, rows: Rows) -> Floats:
    """The inputs of the model's last linear layer; for an encoder, its features."""
    if isinstance(trainer, ContrastiveTrainer):
        return trainer.features(state, rows).double().cpu().numpy()
    layers = [layer for layer in trainer.model.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise TaskError("the model must have a linear layer at its end, to have features that can be compared")
    seen: list[Tensor] = []
    last = getattr(trainer.model, "fc", None)
    handle = (last if isinstance(last, nn.Linear) else layers[-1]).register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].detach().float().flatten(1).cpu())
    )
    try:
        trainer.logits(state, rows)
    finally:
        handle.remove()
    return torch.cat(seen).double().numpy()


def disparity(data: Dataset) -> list[dict[str, Any]]:
    """For every pair of groups of graphs: how far apart their average sizes and degrees are."""
    if data.domain != "graph":
        return []
    nodes, degree = nodes_and_degrees(data)
    mean = {
        g: (nodes[data.groups == i].mean(), degree[data.groups == i].mean()) for i, g in enumerate(data.group_names)
    }
    return [
        {
            "groups": [one, other],
            "size": abs(float(mean[one][0] - mean[other][0])),
            "degree": abs(float(mean[one][1] - mean[other][1])),
        }
        for one, other in combinations(data.group_names, 2)
    ]
