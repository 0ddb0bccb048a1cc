"""UDA: consistency with RandAugment, and training-signal annealing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from augtree.baselines.base import Baseline
from augtree.data.presets import find_for
from augtree.errors import one_of
from augtree.tasks.consistency import SCHEDULES
from augtree.tasks.semisupervised import SemiSupervised
from augtree.tasks.trainer import Trainer
from augtree.training.state import State


@dataclass(frozen=True)
class Uda(Baseline):
    """Unsupervised Data Augmentation (Xie et al. 2020): RandAugment makes the strong view, and labels come slowly.

    Consistency, sharpening and confidence are the task's. Training-signal annealing leaves out labelled samples that
    are predicted better than a threshold, which rises from 1 / classes to 1 over the training. A schedule that the
    task has is kept. For graphs RandAugment draws two of GraphCL's four transforms and Identity for each graph.
    """

    name: ClassVar[str] = "uda"
    about: ClassVar[str] = "consistency with RandAugment, with training-signal annealing"
    source: ClassVar[str] = "Xie et al. 2020, NeurIPS"
    needs: ClassVar[str] = "unlabelled samples"
    costs: ClassVar[str] = "1"
    settings: ClassVar[tuple[str, ...]] = ("semisupervised",)
    domains: ClassVar[tuple[str, ...]] = ("image", "graph")

    tsa: str = "linear"
    """The schedule of the threshold, where the task has none: linear, log or exp (for very few labels)."""

    def __post_init__(self) -> None:
        one_of("tsa", self.tsa, [name for name in SCHEDULES if name != "none"])

    def fit(self, trainer: Trainer, seed: int) -> tuple[State, dict[str, Any]]:
        """The classifier."""
        task = cast(SemiSupervised, trainer.task)
        own = trainer if task.tsa != "none" else replace(task, tsa=self.tsa).prepare(trainer.data)
        state = own.fit(find_for(trainer.data, "randaugment"), seed)
        if own is not trainer:
            trainer.passes.forward += own.passes.forward
            trainer.passes.backward += own.passes.backward
        return state, {}
