"""A test of a trunk by predictions: which flips and turns the data bear, and whether the model overfits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from augtree.errors import TaskError
from augtree.keys import Key
from augtree.runs.checkpoints import LazyState
from augtree.search.branches import Branch, Losses
from augtree.search.factorial import Effect
from augtree.search.scorers.base import mean
from augtree.search.symmetries import symmetry, uninformed_losses, ways
from augtree.search.trunk_events import Finding, finding_of_symmetry
from augtree.training.judging import calibrated_losses
from augtree.training.schedules import cooldown_rates
from augtree.training.state import seed_of
from augtree.transforms.base import Policy
from augtree.transforms.traits import EVERY_SAMPLE, SYMMETRIES

if TYPE_CHECKING:
    from augtree.search.trunk import Trunk

SMALLEST = 1e-9
"""A lower validation loss is taken for this."""


class PredictionTest:
    """One cool-down from the trunk, and what its predictions say."""

    def __init__(self, trunk: Trunk, number: int, at: float) -> None:
        self.trunk, self.number, self.at = trunk, number, round(at, 4)
        self.trainer, self.options, self.rows = trunk.trainer, trunk.options, trunk.rows
        self.steps = self.options.test_steps(self.trainer.total_steps)
        self.about = {"test": number, "at": round(trunk.step / self.trainer.total_steps, 4), "steps": self.steps}

    def run(self) -> set[str]:
        """Settle what is in play; return the flips and turns that were decided."""
        (whole, model), decided = self.cool_down(), set()
        plain = self.losses("plain", partial(self.losses_by_group, model))
        samples = {group: self.trunk.group_of_rows == group for group in self.trunk.plays}
        labels = self.trainer.data.labels[torch.from_numpy(self.rows)]
        information = uninformed_losses(labels, samples.values()) - plain
        for factor in [name for name in SYMMETRIES if name in self.trunk.untested]:
            after = self.losses(factor, partial(self.losses_by_group, model, factor))
            found = symmetry(information, after - plain, samples, self.options.borne)
            self.trunk.settle(finding_of_symmetry(self.number, self.at, factor, found, tuple(samples)))
            decided |= {factor} if found is not None else set()
        least = self.options.least_gap(self.trainer.total_steps)
        if least is not None:
            training = self.losses("training", partial(self.training_losses, model))
            gap = 1 - mean(training) / max(mean(whole), SMALLEST)
            left = tuple(samples) if gap < least else ()
            none = Effect(0.0, 0.0)
            self.trunk.settle(Finding(self.number, self.at, EVERY_SAMPLE, none, {}, left, {}, gap=gap))
        self.trunk.context.checkpoints.drop(f"test/{self.number}")
        return decided

    def cool_down(self) -> tuple[Losses, LazyState]:
        """A cool-down on what is in play: its validation losses, and the model that predicts."""
        trunk = self.trunk
        down = tuple(self.trainer.task.rate * share for share in cooldown_rates(self.steps))
        seed = seed_of(trunk.seed, "test", self.number)
        branch = Branch(trunk.mixture(trunk.plays), down, seed, self.rows, keep_model=True)
        ((losses, model),) = trunk.run_branches({f"test/{self.number}": branch}, self.about)
        return losses, cast(LazyState, model)

    def losses(self, name: str, work: Callable[[], Losses]) -> Losses:
        """Losses as a unit of the run."""
        about: dict[str, Any] = {**self.about, "predicted": name}
        losses = self.trunk.context.losses(f"test/{self.number}/{name}", about, work, keep=True).losses
        if losses is None:
            raise TaskError(f"the model must predict finite numbers, but its losses are not finite (test: {name})")
        return losses

    def losses_by_group(self, model: LazyState, factor: str | None = None) -> Losses:
        """The validation losses, calibrated group by group; of a flip or turn, the mean over its orientations."""
        orientations: tuple[Policy | None, ...] = (None,)
        if factor is not None:
            _, _, height, width = cast(Tensor, self.trainer.data.samples).shape
            orientations = ways(factor, square=height == width)
        labels, losses = self.trainer.data.labels[torch.from_numpy(self.rows)], np.zeros(len(self.rows))
        for way in orientations:
            logits = self.trainer.logits(model(), self.rows, way).cpu()
            for group in self.trunk.plays:
                own = self.trunk.group_of_rows == group
                losses[own] += calibrated_losses(logits[own], labels[own]).double().numpy() / len(orientations)
        return losses

    def training_losses(self, model: LazyState) -> Losses:
        """The losses on training samples, unchanged: as many as there are validation samples at most, at random."""
        rows = self.trainer.data.indices("train")
        drawn = Key.of(self.trunk.seed, rows, role="training losses").uniform()
        return self.trainer.calibrated_losses(model(), np.sort(rows[np.argsort(drawn)[: len(self.rows)]]))
