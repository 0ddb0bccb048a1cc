"""Fast AutoAugment: policies that make the augmented half of the data look like the half that a model knows.

Lim, Kim, Kim, Kim and Kim, "Fast AutoAugment", NeurIPS 2019, Algorithm 1: the training samples are divided into
folds; for each, a model is trained without augmentation on the others; policies of five pairs of operations are
judged by its loss on the augmented fold ("density matching"); a tree-structured Parzen estimator, here Optuna's,
proposes them; the best of every round are merged, and a model is trained with them on all samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from augtree.baselines.base import Baseline
from augtree.baselines.candidates import kinds_for, made
from augtree.baselines.parts import Parts
from augtree.data import Dataset
from augtree.errors import ArgumentError, need, whole_number
from augtree.keys import Key
from augtree.policies.codec import Reader, to_json
from augtree.tasks import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of
from augtree.transforms import Chain, Identity, OneOf
from augtree.transforms.base import Transform

EXTRA = "methods"
"""The extra that brings Optuna."""
WEAKEST = 0.01
"""The lowest magnitude that is proposed."""


@dataclass(frozen=True)
class FastAutoAugment(Baseline):
    """Sub-policies by density matching on folds, merged.

    Examples
    --------
    >>> FastAutoAugment(folds=2, trials=20).spec()["trials"]
    20

    """

    name = "fast-autoaugment"
    about = "sub-policies that match the density of held-out folds, merged"
    source = "Lim et al. 2019, NeurIPS"
    needs = f'optuna: pip install "augtree[{EXTRA}]"'
    costs = "6: 5 folds and a last training, and 400 forward passes of the training samples (2.5 at 80 epochs)"
    settings = ("supervised",)
    domains = ("image",)

    folds: int = 5
    """The parts of the training samples, with a model each."""
    rounds: int = 2
    """Searches in a fold."""
    trials: int = 200
    """Policies that a search tries."""
    keep: int = 10
    """The best policies of a search, which are merged."""
    pairs: int = 5
    """Sub-policies in a policy, each a pair of operations."""

    def __post_init__(self) -> None:
        whole_number("folds", self.folds, 2, 100)
        for name in ("rounds", "trials", "keep"):
            whole_number(name, getattr(self, name), 1, 10**6)
        whole_number("pairs", self.pairs, 1, 100)
        if self.folds * self.rounds * min(self.keep, self.trials) > 256:
            rule = "must be at most 256, folds x rounds x keep: what is merged is one transform"
            raise ArgumentError("keep", rule, self.folds * self.rounds * self.keep)

    def check(self, task: Task, data: Dataset) -> None:
        super().check(task, data)
        need("optuna", EXTRA)
        whole_number(f"{self.name}/folds", self.folds, 2, len(data.indices("train")))

    def fit_in_parts(self, trainer: Trainer, seed: int, parts: Parts) -> tuple[State, dict[str, Any]]:
        policies = self.search(trainer, seed, parts)
        return trainer.fit(OneOf(policies), seed), {"sub-policies": len(policies) * self.pairs}

    def search(self, trainer: Trainer, seed: int, parts: Parts) -> list[Transform]:
        """The best policies of every fold and round."""
        folds = folds_of(trainer.data, trainer.rows, self.folds, seed)
        found: list[Transform] = []
        reader = Reader(Path(self.name), ())
        for fold in range(self.folds):
            value = parts.value(f"fold {fold + 1}", partial(self.search_fold, trainer, folds, fold, seed))
            found += [cast(Transform, reader.policy(text)) for text in value["policies"]]
        return found

    def search_fold(self, trainer: Trainer, folds: Sequence[Rows], fold: int, seed: int) -> dict[str, Any]:
        """The best policies of a fold in every round, as text."""
        known = np.concatenate([part for other, part in enumerate(folds) if other != fold])
        state = trainer.fit(Identity(), seed_of(seed, "fold", fold), rows=np.sort(known))
        found: list[Transform] = []
        for turn in range(self.rounds):
            found += self.best_policies(trainer, state, folds[fold], seed_of(seed, "fold", fold, "round", turn))
        return {"policies": [to_json(policy) for policy in found]}

    def best_policies(self, trainer: Trainer, state: State, rows: Rows, seed: int) -> list[Transform]:
        """The policies of one search with the lowest losses, the best first."""
        optuna = need("optuna", EXTRA)

        def objective(trial: Any) -> float:
            return score(trainer, state, rows, proposed(trial, self.pairs, trainer.data), seed)

        with quiet(optuna):
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed % 2**32))
            study.optimize(objective, n_trials=self.trials)
        best = sorted(study.trials, key=lambda trial: (trial.value, trial.number))[: self.keep]
        return [proposed(optuna.trial.FixedTrial(trial.params), self.pairs, trainer.data) for trial in best]


def proposed(trial: Any, pairs: int, data: Dataset) -> Transform:
    """The policy that a trial proposes: one of several pairs, each operation with its probability and magnitude."""
    kinds = {kind.__name__: kind for kind in kinds_for(data)}
    choices: list[Transform] = []
    for i in range(pairs):
        steps: list[tuple[Transform, float]] = []
        for j in range(2):
            kind = kinds[trial.suggest_categorical(f"{i}/{j}/operation", list(kinds))]
            p = trial.suggest_float(f"{i}/{j}/p", 0.0, 1.0)
            steps.append((made(kind, trial.suggest_float(f"{i}/{j}/magnitude", WEAKEST, 1.0), data), p))
        choices.append(Chain(steps))
    return OneOf(choices)


def score(trainer: Trainer, state: State, rows: Rows, policy: Transform, seed: int) -> float:
    """The mean loss of a model on augmented samples."""
    return float(trainer.losses(state, rows, policy, seed).mean())


def folds_of(data: Dataset, rows: Rows, folds: int, seed: int) -> list[Rows]:
    """The rows in parts of about one size, each with its share of every label."""
    shuffled = rows[np.argsort(Key.of(seed, rows, role="folds").uniform(), kind="stable")]
    labels = data.labels.numpy()[shuffled]
    if labels.ndim == 1:
        shuffled = shuffled[np.argsort(labels, kind="stable")]
    return [np.sort(shuffled[i::folds]) for i in range(folds)]


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from reporting every trial, and from showing the traceback of one that Ctrl-C ended."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
