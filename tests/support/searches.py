"""Toy problems with a known best transform, and trainers small enough for a test."""

from __future__ import annotations

import numpy as np
from torch import nn

from augtree.data import Dataset, from_arrays
from augtree.runs.store import Run
from augtree.search.branches import BranchRunner
from augtree.search.scorers import Cooldown, ScoringContext
from augtree.search.scorers.base import confirmed
from augtree.search.scorers.cooldown import Plan
from augtree.search.trunk import Trunk
from augtree.tasks import Classification
from augtree.transforms import Brightness, Cutout, Flip, Identity, Invert, Posterize, Rotate, Space, VerticalFlip

INVERT = Invert(0.2)
SPACE = [Rotate(0.2), Posterize(1.0), INVERT, Brightness(0.2), Cutout(0.2)]


def bars(
    train_dark: float, val_dark: float, train: int = 64, val: int = 64, seed: int = 0, wrong: float = 0
) -> Dataset:
    """A bar that stands or lies, bright on dark; for shares of the pictures dark on bright; some labels wrong."""
    rng = np.random.default_rng(seed)
    count = train + val
    labels = np.arange(count) % 2
    pictures = rng.integers(0, 60, (count, 8, 8))
    for picture, label in zip(pictures, labels, strict=True):
        bar = (slice(None), slice(3, 5)) if label == 0 else (slice(3, 5), slice(None))
        picture[bar] += 180
    both = ((train, train_dark), (val, val_dark))
    dark = np.concatenate([np.arange(size) // 2 % 10 < 10 * share for size, share in both])
    pictures[dark] = 255 - pictures[dark]
    labels = np.where(rng.random(count) < wrong, 1 - labels, labels)
    return from_arrays(pictures.astype(np.uint8), labels, split=["train"] * train + ["val"] * val, name="bars")


def small_model() -> nn.Module:
    """Enough to tell bars of both kinds, if both were seen."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))


TASK = Classification(model=small_model, steps=40, batch_size=32, lr=0.05, device="cpu")


def context_on(
    data: Dataset, space=SPACE, probabilities=(0.25, 0.5, 1.0), seed=0, task=TASK, run=None, **more
) -> ScoringContext:
    """A context, in memory where no run is given; its run counts what the trainer does."""
    trainer, run = task.prepare(data), run or Run.begin(None, {})
    run.meter = lambda: (trainer.passes.forward, trainer.passes.backward)
    return ScoringContext(trainer, list(space), tuple(probabilities), seed, run, **more)


def whatever_is_best(entry, scores, sure):
    """The confirmation, but with `sure=0` every winner is kept that does not fail."""
    found = confirmed(entry, scores, sure)
    return found if sure or isinstance(found.transform, Identity) else found._replace(improves=True, why="")


# ---- a search by cool-downs: what harms and what helps is known


def corners(train: int = 64, val: int = 128, seed: int = 0, lower: float = 0.5, groups=None) -> Dataset:
    """A bright corner, left or right (the class): above in training, for a share of the validation data below.

    So a flip left-right makes the labels wrong, and a flip up-down shows what training lacks.
    """
    rng, count = np.random.default_rng(seed), train + val
    labels = np.arange(count) % 2
    below = np.concatenate([np.zeros(train, bool), np.arange(val) // 2 % 10 < 10 * lower])
    pictures = rng.integers(0, 120, (count, 6, 6))
    for picture, right, down in zip(pictures, labels, below, strict=True):
        picture[3 * down : 3 * down + 3, 3 * right : 3 * right + 3] += 60
    split = ["train"] * train + ["val"] * val
    return from_arrays(pictures.astype(np.uint8), labels, split=split, groups=groups, name="corners")


def linear_model() -> nn.Module:
    """A weight for each pixel."""
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 2))


LINEAR = Classification(model=linear_model, steps=80, batch_size=64, lr=0.02, device="cpu")
CORNERS = Space([Posterize(0.2)], basics=[Flip(1.0), VerticalFlip()])
QUICK = Cooldown(looks=(0.3, 0.6), look=0.2, shortest=4, tests=(), clear=3.0, cool=0.3, renew=4)


PLAN = Plan(1.0, (0.25, 0.5), 0.3, 2)


def trunk_on(data, plays, options=QUICK, plan=PLAN, task=LINEAR, seed=0, **more):
    """A trunk that has not begun, in this process and in memory."""
    context = context_on(data, CORNERS, task=task, seed=seed)
    return Trunk(context, BranchRunner(context.trainer), options, plan, plays, **more)


def bright_or_dark(seed=0):
    """Classes that are told by brightness alone."""
    rng, labels = np.random.default_rng(seed), np.arange(192) % 2
    pictures = rng.integers(0, 150, (192, 6, 6)) + 100 * labels[:, None, None]
    return from_arrays(pictures.astype(np.uint8), labels, split=["train"] * 64 + ["val"] * 128, name="bright or dark")
