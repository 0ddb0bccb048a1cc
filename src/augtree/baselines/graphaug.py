"""GraphAug: a generator of augmentation steps for each graph, rewarded where the label stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from augtree.baselines.base import Baseline
from augtree.baselines.graph_generator import Generated, Generator
from augtree.baselines.loop import Learner, descend, preprocessed
from augtree.baselines.partners import drawn_partners, label_numbers
from augtree.data import Dataset
from augtree.errors import ArgumentError, number, whole_number
from augtree.keys import Key
from augtree.models import Inputs
from augtree.models.gin import Gin
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of, seeded
from augtree.transforms.graph_parts import joined

SAME, PARTNER = range(2)
"""Counters of the draws of pairs."""


@dataclass(frozen=True)
class GraphAug(Baseline):
    """GraphAug (Luo et al. 2023): learns, for each graph, augmentations that keep its label.

    1. A reward model learns, from pairs of training samples, whether two graphs have the same label.
    2. A generator takes `length` steps on each graph. In each, a graph network looks at the graph as it is now, a
       recurrent cell remembers the steps before, and the choices are a category (mask nodes, drop nodes, perturb
       edges) and, independently of each other, the nodes that it changes, or the edges that go and come. Its reward
       is the log-probability of the reward model that the result has the label of the original, and policy gradients
       (REINFORCE) raise it.
    3. The classifier trains on what the generator makes.

    Simpler than in the paper: the reward model compares pooled graphs in place of matching their nodes; the pooled
    graph takes the place of a virtual node; masks are for whole nodes; the mean reward of the batch is subtracted, to
    lower the variance.

    Nothing rewards a change by itself. A generator may end by leaving graphs as they are, which is a safe way to keep
    their labels, and one with a poor reward model does what that model misjudges: `label kept` and `elements changed`
    of a row say where it ended.
    """

    name: ClassVar[str] = "graphaug"
    about: ClassVar[str] = "a learned generator of augmentation steps for each graph, rewarded where the label stays"
    source: ClassVar[str] = "Luo et al. 2023, ICLR"
    needs: ClassVar[str] = "one label a graph"
    costs: ClassVar[str] = "4.5 by default (reward model 1, generator 1.5, the training on its graphs 2)"
    settings: ClassVar[tuple[str, ...]] = ("supervised",)
    domains: ClassVar[tuple[str, ...]] = ("graph",)

    length: int = 2
    """The steps on each graph."""
    learning: float = 0.5
    """The steps of the reward model's training, and of the generator's, in trainings."""
    lr: float = 0.002
    """Their highest learning rate, by AdamW and the task's schedule."""

    def __post_init__(self) -> None:
        whole_number("length", self.length, 1, 64)
        number("learning", self.learning, 0, 1000, open_low=True)
        number("lr", self.lr, 0, 10, open_low=True)

    def check(self, task: Task, data: Dataset) -> None:
        """Raise for several labels a sample, and for a single class."""
        super().check(task, data)
        if data.multilabel:
            raise ArgumentError("labels", "must be one for each graph, for graphaug", "several")
        classes = np.unique(data.labels.numpy()[data.indices("train")])
        if len(classes) < 2:
            names = [data.classes[i] for i in classes]
            raise ArgumentError("labels", "must be of at least two classes among the training samples", names)

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The classifier, how probable it was at the end that labels stay, and how much of a graph was changed."""
        reward = self.reward_model(trainer, seed)
        generator, figures = self.generator(trainer, reward, seed)
        before = trainer.passes.forward
        state = trainer.fit(Generated(generator), seed)
        trainer.passes.forward += self.length * (trainer.passes.forward - before)
        return state, figures

    def rates(self, trainer: Trainer) -> list[float]:
        """The learning rates of the reward model and of the generator."""
        steps = max(1, round(self.learning * trainer.total_steps))
        return [self.lr * rate / trainer.task.rate for rate in trainer.task.rates(steps)]

    def reward_model(self, trainer: Trainer, seed: int) -> SameLabel:
        """A network that was trained to tell whether two graphs have the same label."""
        rates = self.rates(trainer)
        seed = seed_of(seed, "graphaug reward")
        with trainer.deterministically(), seeded(seed, trainer.device):
            model = SameLabel(trainer.inputs().channels)
            losses = pair_losses(trainer, model, len(rates), seed)
            descend([Learner(model, trainer, adam=True)], rates, losses)
        return model.eval()

    def generator(self, trainer: Trainer, reward: SameLabel, seed: int) -> tuple[Generator, dict[str, float]]:
        """A generator trained by the reward, and the mean figures of the last tenth of its steps."""
        rates, figures = self.rates(trainer), list[tuple[float, float]]()
        seed = seed_of(seed, "graphaug generator")
        with trainer.deterministically(), seeded(seed, trainer.device):
            model = Generator(trainer.inputs().channels, self.length)
            losses = self.policy_losses(trainer, model, reward, len(rates), seed, figures)
            descend([Learner(model, trainer, adam=True)], rates, losses)
        kept, changed = np.mean(figures[-max(1, len(figures) // 10) :], axis=0)
        return model.eval(), {"label kept": float(kept), "elements changed": float(changed)}

    def policy_losses(
        self,
        trainer: Trainer,
        model: Generator,
        reward: SameLabel,
        steps: int,
        seed: int,
        figures: list[tuple[float, float]],
    ) -> Iterator[Tensor]:
        """Losses whose gradients are REINFORCE's.

        The mean probability that labels stay, and the nodes and edges changed in a graph, are appended to `figures`.
        """
        for rows, draw_ids in batches(trainer, steps, seed):
            graphs = preprocessed(trainer, rows, draw_ids, seed)
            made = model(graphs, Key.of(seed, draw_ids, role="graphaug"))
            with torch.no_grad():
                rewards = reward.rewards(graphs, made.batch)
            figures.append((float(rewards.exp().mean()), float(made.changes.mean())))
            trainer.passes.forward += (self.length + 2) * len(rows)
            trainer.passes.backward += self.length * len(rows)
            yield policy_loss(rewards, made.log_probability)


def policy_loss(rewards: Tensor, log_probability: Tensor) -> Tensor:
    """A loss whose gradient is minus REINFORCE's, with the mean reward as baseline."""
    return -((rewards - rewards.mean()) * log_probability).mean()


class SameLabel(nn.Module):
    """Whether two graphs have the same label, from how far their pooled nodes are apart."""

    def __init__(self, channels: int, hidden: int = 32) -> None:
        super().__init__()
        self.encoder = Gin(Inputs("graph", channels, 0, 1), layers=2, hidden=hidden, pooling="mean")
        self.head = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, one: Any, two: Any) -> Tensor:
        """The log-odds that each graph of one batch has the label of its partner in the other."""
        first, second = self.encoder.features(joined(one, two)).chunk(2)
        return cast(Tensor, self.head((first - second).abs())[:, 0])

    def rewards(self, originals: Any, changed: Any) -> Tensor:
        """The log-probability that each changed graph has the label of its original."""
        return F.logsigmoid(self(originals, changed))


def batches(trainer: Trainer, steps: int, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """The rows of each step, and the positions of their draws."""
    size, order = trainer.batch_size, trainer.order_of(trainer.rows, seed)
    for step in range(steps):
        yield order(step * size, size)


def pair_losses(trainer: Trainer, model: SameLabel, steps: int, seed: int) -> Iterator[Tensor]:
    """The loss of the reward model on the pairs of each step."""
    labels = label_numbers(trainer.data, np.arange(len(trainer.data)))
    for rows, draw_ids in batches(trainer, steps, seed):
        partners = drawn_pairs(labels, trainer.rows, rows, Key.of(seed, draw_ids, role="graphaug pairs"))
        own = preprocessed(trainer, rows, draw_ids, seed)
        others = preprocessed(trainer, partners, draw_ids, seed_of(seed, "partner"))
        same = torch.from_numpy(labels[rows] == labels[partners]).float().to(trainer.device)
        trainer.passes.forward += 2 * len(rows)
        trainer.passes.backward += 2 * len(rows)
        yield F.binary_cross_entropy_with_logits(model(own, others), same)


def drawn_pairs(labels: Rows, pool: Rows, rows: Rows, key: Key) -> Rows:
    """A partner for each sample: half of them of the same label, half of another; itself where there is none."""
    same_label = labels[rows][:, None] == labels[pool]
    itself = rows[:, None] == pool
    wanted: Sequence[Any] = [same_label & ~itself, ~same_label]
    same, other = (drawn_partners(allowed, key.uniform(PARTNER)) for allowed in wanted)
    chosen = np.where(key.uniform(SAME) < 0.5, same, other)
    return np.where(chosen >= 0, pool[chosen], rows)
