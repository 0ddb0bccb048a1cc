"""A loss of your own: a task whose trainer has another `output_losses`. Here: the focal loss (Lin et al. 2017)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn.functional import cross_entropy

import augtree as at
from augtree.tasks.classification import ClassificationTrainer


@dataclass(frozen=True)
class Focal(at.tasks.Classification):
    """Classification with the focal loss."""

    kind: ClassVar[str] = "focal"
    gamma: float = 2.0
    """How much less samples count that are right already."""

    def prepare(self, data):
        return FocalTrainer(self, data)


class FocalTrainer(ClassificationTrainer):
    """Lowers the focal loss; candidates are judged by the loss of the labels, as usual."""

    def output_losses(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = cross_entropy(outputs, labels, reduction="none")  # one for each sample
        return (1 - torch.exp(-loss)) ** self.task.gamma * loss


data = at.data.load("digits", train=200, val=200)
task = Focal(model="cnn", options={"width": 8}, steps=60, batch_size=32, gamma=1.5)
result = at.search_tree(data, task)
print(f"accuracy {result.measures['accuracy']:.3f} with the loss of {task.kind}, gamma {task.gamma}")
