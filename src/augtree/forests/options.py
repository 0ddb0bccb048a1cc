"""The options of Algorithm 2: how the weights of the groups are learned.

With outer="train", as the paper writes it, the groups' proportions are optimal already. The Hessian of a network is
mostly not positive; its Gauss-Newton part is never negative. With d="cosine", the effect of eta does not depend on
the scale of the losses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from augtree.errors import ArgumentError, number, one_of, whole_number

CHOICES = {
    "outer": ("val", "train"),
    "target": ("average", "worst"),
    "solver": ("cg", "series"),
    "product": ("gauss-newton", "auto", "hessian"),
    "d": ("raw", "cosine"),
    "start": ("uniform", "proportions"),
}


@dataclass(frozen=True)
class Weighting:
    """The options of Algorithm 2. The paper has start="uniform" and d="raw"; alpha and eta are the paper's.

    Examples
    --------
    >>> from augtree import Weighting
    >>> Weighting(target="worst", alpha=20).alpha
    20
    >>> Weighting(alpha=0)
    Traceback (most recent call last):
    augtree.errors.ArgumentError: alpha must be a whole number from 1 to 1000000000, got 0

    """

    alpha: int = 50
    """SGD steps between two updates of the weights."""
    eta: float = 0.1
    """Step size of an update; with 0 the weights stay as they start."""
    start: str = "proportions"
    """The first weights: the groups' proportions in the training data (proportions), or all equal (uniform)."""
    outer: str = "val"
    """The samples whose loss the weights lower: validation (val), or augmented training samples (train)."""
    target: str = "average"
    """The loss that the weights lower: the groups' average by proportions (average), or the worst group's (worst)."""
    d: str = "cosine"
    """The update's direction: divided by the lengths of its two factors (cosine), or as it is (raw)."""
    solver: str = "cg"
    """Conjugate gradients (cg), or the paper's stochastic series (series)."""
    product: str = "gauss-newton"
    """The matrix of the solve: gauss-newton, hessian, or auto (hessian until it is found not to be positive)."""
    damping: float = 0.3
    """Added to the diagonal of the matrix of the solve."""
    iterations: int = 4
    """The most matrix-vector products in a solve."""
    tolerance: float = 0.1
    """The relative residual at which a solve ends."""
    scale: float = 20.0
    """The divisor of the matrix in the series: more than half of its largest eigenvalue."""
    batch: int | None = None
    """Samples of each group in an update; by default a batch is divided among the groups, at least 16 each."""

    def __post_init__(self) -> None:
        whole_number("alpha", self.alpha, 1, 10**9)
        number("eta", self.eta, 0, 1e6)
        for field, names in CHOICES.items():
            one_of(field, getattr(self, field), names)
        number("damping", self.damping, 0, 1e9)
        whole_number("iterations", self.iterations, 1, 10**6)
        number("tolerance", self.tolerance, 0, 1, open_low=True)
        number("scale", self.scale, 0, 1e12, open_low=True)
        if self.batch is not None:
            whole_number("batch", self.batch, 1, 10**6)

    @property
    def fewest_val(self) -> int:
        """The fewest validation samples that each group needs."""
        return 1 if self.outer == "val" and self.eta > 0 else 0

    def spec(self) -> dict[str, Any]:
        """The options as a value for a file."""
        return dataclasses.asdict(self)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Weighting:
        """From such a value; options that only other versions have are left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in spec.items() if name in known})

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Weighting:
        """From options by name; an ArgumentError names the known ones."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in known:
                raise ArgumentError(name, f"must be one of {', '.join(known)}", options[name])
        return cls(**options)
