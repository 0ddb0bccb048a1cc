"""How the weights of the groups are learned."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from augtree.errors import number, one_of, whole_number

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
    """The options of Algorithm 2, with the paper's alpha and eta; start="uniform", d="raw" are the paper's too."""

    alpha: int = 50
    """SGD steps between two updates of the weights."""
    eta: float = 0.1
    """How far an update goes; with 0 the weights stay as they begin."""
    start: str = "proportions"
    """The weights at first: the groups' proportions in the training data, or (uniform) all the same."""
    outer: str = "val"
    """The loss that the weights should lower: on clean validation data; or, as the paper writes it, on the training
    data as the trees make them, where the groups' proportions are optimal already."""
    target: str = "average"
    """Whether that is the average over the groups, by their proportions, or the worst group's."""
    d: str = "cosine"
    """The direction divided by the lengths of its two factors, so that eta is no matter of scale; or raw."""
    solver: str = "cg"
    """Conjugate gradients, or the paper's stochastic series."""
    product: str = "gauss-newton"
    """The Gauss-Newton part of the Hessian, which is never negative; hessian; or (auto) the Hessian until it is found
    not to be positive, which with networks is mostly at once."""
    damping: float = 0.3
    """Is added to the diagonal."""
    iterations: int = 4
    """Products in a solve, at most."""
    tolerance: float = 0.1
    """A solve ends when the residual is so small."""
    scale: float = 20.0
    """What the series divides the Hessian by: more than half of its largest eigenvalue."""
    batch: int | None = None
    """Samples of each group in an update (default: as many as make a batch, at least 16)."""

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
        """Validation samples that each group needs for this."""
        return 1 if self.outer == "val" and self.eta > 0 else 0

    def spec(self) -> dict[str, Any]:
        """The options as a value for a file."""
        return dataclasses.asdict(self)
