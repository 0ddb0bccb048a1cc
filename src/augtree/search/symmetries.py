"""Which flips and turns the data bear, as predictions tell.

A model that was never trained on flips predicts flipped samples as well as plain ones where a flip leads from samples
of the data to others of the same class. Elsewhere it loses information: mirrored letters are other letters, or none.
The test needs no training but a short cool-down, and it is exact to the noise of the validation samples, where
trainings with and without flips differ by chance as well.

The information of predictions is how far their loss is below that of the classes' shares alone. Data bear a flip
where predictions for flipped samples keep a given share of it. Both losses are calibrated, so that a confident model
does not seem to lose more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from augtree.search.branches import Losses
from augtree.search.factorial import Effect, shrunk
from augtree.training.judging import label_losses
from augtree.transforms.base import Policy

NEGLIGIBLE = 0.01
"""A difference of this share of the information is none."""
PRIOR = 10.0
"""The samples of a group with which its shares of classes count as much as those of all."""
LEARNED = 2.0
"""A model has learned enough to test by where its information exceeds this many standard errors."""


@dataclass(frozen=True)
class Reoriented(Policy):
    """Every picture mirrored or turned in the same way; a policy for predictions alone."""

    mirrored: tuple[int, ...] = ()
    """The axes that are mirrored."""
    quarters: int = 0
    """Quarter turns."""

    def __call__(self, batch: Tensor, **where: Any) -> Tensor:  # type: ignore[override]  # noqa: ARG002
        return batch.flip(self.mirrored).rot90(self.quarters, (-2, -1)).contiguous()


def ways(factor: str, *, square: bool) -> tuple[Reoriented, ...]:
    """The orientations that a flip or turn leads to, without the picture as it is.

    >>> ways("Flip", square=True)
    (Reoriented(mirrored=(-1,), quarters=0),)
    """
    if factor == "QuarterTurn":
        return tuple(Reoriented(quarters=quarters) for quarters in ((1, 3) if square else (2,)))
    return (Reoriented(mirrored=(-1 if factor == "Flip" else -2,)),)


class Symmetry(NamedTuple):
    """What a test says of a flip or turn."""

    common: Effect
    """How far the loss on flipped or turned samples exceeds what it may: above zero, the data do not bear it."""
    groups: Mapping[str, Effect]
    """The same in each group, shrunk towards all."""
    kept: Mapping[str, float]
    """The share of its information that the model keeps, in each group of which it knows something."""
    kept_se: Mapping[str, float]
    """Its standard error."""

    @property
    def borne_by(self) -> list[str]:
        """The groups that bear it."""
        return [group for group, each in self.groups.items() if each.harm <= 0]


def symmetry(information: Losses, fall: Losses, groups: Mapping[str, Any], share: float) -> Symmetry | None:
    """Whether predictions keep this share of their information; None where they have hardly any.

    Most samples lose nothing and a few lose much, so that the spread within a small group says little: all groups
    have the common spread. A group of which the model knows hardly anything has the answer of all together.

    Parameters
    ----------
    information
        By how much the loss of each sample is below that of the classes' shares.
    fall
        By how much it is higher where the sample is flipped or turned.
    groups
        The samples of each group.
    share
        The share of the information that must be kept.

    """
    spread = spread_within(information, groups)
    known = {name: rows for name, rows in groups.items() if is_known(information[rows], spread)}
    if not is_known(information, float(information.std(ddof=1)) if len(information) > 1 else 0.0) or not known:
        return None
    excess, floor = fall - (1 - share) * information, NEGLIGIBLE * float(information.mean())
    spread = spread_within(excess, known)
    common, own = shrunk(
        {
            name: Effect(float(excess[rows].mean()), float(np.hypot(spread / np.sqrt(rows.sum()), floor)))
            for name, rows in known.items()
        }
    )
    means = {name: float(information[rows].mean()) for name, rows in known.items()}
    kept = {name: min(1.0, max(0.0, share - own[name].harm / has)) for name, has in means.items()}
    errors = {name: own[name].se / has for name, has in means.items()}
    return Symmetry(common, {name: own.get(name, common) for name in groups}, kept, errors)


def is_known(information: Losses, spread: float) -> bool:
    """Whether a model clearly knows something of some samples."""
    return float(information.mean()) > LEARNED * spread / float(np.sqrt(len(information)))


def spread_within(values: Losses, groups: Mapping[str, Any]) -> float:
    """The standard deviation of samples around the means of their groups, over all groups."""
    squares = sum(float(((values[rows] - values[rows].mean()) ** 2).sum()) for rows in groups.values())
    freedom = sum(int(rows.sum()) - 1 for rows in groups.values())
    return float(np.sqrt(squares / freedom)) if freedom else 0.0


def uninformed_losses(labels: Tensor, groups: Iterable[Any]) -> Losses:
    """The loss of each sample where only the shares of the classes in its group are known.

    The shares of a group count as much as those of all samples where it has `PRIOR` samples.
    """
    out, everything = np.zeros(len(labels)), shares_of(labels)
    for rows in groups:
        own = labels[torch.from_numpy(np.flatnonzero(rows))]
        size = min(len(everything), len(shares_of(own)))
        known = torch.zeros_like(everything)
        known[:size] = shares_of(own)[:size]
        shares = (len(own) * known + PRIOR * everything) / (len(own) + PRIOR)
        logits = (shares.log() if own.ndim == 1 else shares.logit(eps=1e-6)).expand(len(own), -1)
        out[rows] = label_losses(logits, own).numpy()
    return out


def shares_of(labels: Tensor) -> Tensor:
    """The share of samples with each label."""
    return torch.bincount(labels).double() / len(labels) if labels.ndim == 1 else labels.double().mean(0)
