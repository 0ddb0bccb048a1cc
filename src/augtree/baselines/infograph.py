"""InfoGraph (Sun et al. 2020): an encoder that tells which graph a node is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augtree.baselines.base import Baseline
from augtree.baselines.loop import Learner, preprocessed, train_by
from augtree.data import Dataset
from augtree.errors import ArgumentError
from augtree.models.graph import GraphModel
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State, seed_of, seeded


@dataclass(frozen=True)
class InfoGraph(Baseline):
    """InfoGraph (Sun et al. 2020): maximises the mutual information of graphs and their nodes, without augmentation.

    The nodes of all layers, side by side, and the pooled graphs go through a network each; their inner product scores
    a pair. The loss is the Jensen-Shannon estimator over all pairs of a batch, a node being positive with its own
    graph and negative with every other one.
    """

    name: ClassVar[str] = "infograph"
    about: ClassVar[str] = "maximises the mutual information of graphs and their nodes, without augmentation"
    source: ClassVar[str] = "Sun et al. 2020, ICLR"
    needs: ClassVar[str] = "a model that shows its nodes: gin or resgcn"
    costs: ClassVar[str] = "0.5 (one view of each graph in place of two)"
    settings: ClassVar[tuple[str, ...]] = ("contrastive",)
    domains: ClassVar[tuple[str, ...]] = ("graph",)
    uses_labels: ClassVar[bool] = False

    def check(self, task: Task, data: Dataset) -> None:
        """Raise where the model shows no nodes."""
        super().check(task, data)
        model = task.model_for(data)
        if not isinstance(model, str) and not isinstance(made := model(), GraphModel):
            raise ArgumentError("model", "must be gin or resgcn for infograph, which needs its nodes", type(made))

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The encoder."""
        encoder, start = cast(GraphModel, trainer.model), trainer.fresh(seed)
        rates = trainer.task.rates(trainer.total_steps)
        with seeded(seed_of(seed, "infograph")):
            scorer = Learner(PairScores(width_of(encoder)), trainer)

        def loss(batch: Any) -> Tensor:
            with trainer.precision():
                graphs, nodes, members = encoder.with_nodes(batch)
            return jensen_shannon(scorer.network(nodes.float(), graphs.float()), members)

        return train_by(trainer, start, rates, seed, batches(trainer, len(rates), seed), loss, scorer), {}


def width_of(encoder: GraphModel) -> int:
    """The number of features of a node, which is that of a graph."""
    return int(cast(nn.Linear, encoder.get_submodule("fc.0")).in_features)


def batches(trainer: Trainer, steps: int, seed: int) -> Iterator[tuple[Any, int]]:
    """Batches of graphs as they are after preprocessing."""
    size, order = trainer.batch_size, trainer.order_of(trainer.rows, seed)
    for step in range(steps):
        yield preprocessed(trainer, *order(step * size, size), seed), size


class PairScores(nn.Module):
    """The score of each node with each graph."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.nodes, self.graphs = Branch(width), Branch(width)

    def forward(self, nodes: Tensor, graphs: Tensor) -> Tensor:
        """Inner products [nodes, graphs]."""
        scores: Tensor = self.nodes(nodes) @ self.graphs(graphs).T
        return scores


class Branch(nn.Module):
    """Three layers, and a linear way around them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        layers = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.ReLU())]
        self.layers, self.around = nn.Sequential(*layers), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """As many features as before."""
        out: Tensor = self.layers(x) + self.around(x)
        return out


def jensen_shannon(scores: Tensor, members: Tensor) -> Tensor:
    """Minus the Jensen-Shannon estimate of mutual information, from scores [nodes, graphs] and each node's graph.

    The estimate is E[-softplus(-score)] over pairs of a node and its graph, less E[softplus(score)] over all others.
    """
    own = members[:, None] == torch.arange(scores.shape[1], device=scores.device)
    positive, negative = -F.softplus(-scores), F.softplus(scores)
    return (negative * ~own).sum() / (~own).sum() - (positive * own).sum() / own.sum()
