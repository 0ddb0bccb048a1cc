"""The free policies: those that need no search, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from augtree.errors import PolicyFileError, nearest
from augtree.policies.codec import load
from augtree.transforms import (
    AutoAugment,
    Chain,
    Flip,
    GraphCL,
    Identity,
    OneOf,
    PadCrop,
    Policy,
    RandAugment,
    Transform,
    TrivialAugment,
)
from augtree.transforms.graphs import FOUR, MaskNodes
from augtree.transforms.operation import FILL
from augtree.transforms.spaces import simclr_chain

GRAPHCL = 0.2
"""The share of a graph that GraphCL changes."""


def graphcl() -> GraphCL:
    """GraphCL's four operations, one for each graph (You et al. 2020)."""
    return GraphCL(GRAPHCL)


def graph_randaugment(n: int = 2, magnitude: float = GRAPHCL, *, features: bool = True) -> Chain:
    """RandAugment for graphs: n operations in a row, each graph's drawn from Identity and GraphCL's four.

    Without node features there is nothing to mask.
    """
    kinds = [kind for kind in FOUR if features or kind is not MaskNodes]
    return Chain([OneOf([Identity(), *(kind(magnitude) for kind in kinds)])] * n)


def over_basics(*style: Transform, pad: int = 4) -> Chain:
    """Flips left-right and crops, then a policy: what most people begin with."""
    return Chain([Flip(), PadCrop(pad), *style])


NAMED: dict[str, Callable[[int], Policy]] = {
    "none": lambda fill: Identity(),  # noqa: ARG005
    "randaugment": lambda fill: RandAugment(fill=fill),
    "trivialaugment": lambda fill: TrivialAugment(fill=fill),
    "flip-crop": lambda fill: over_basics(),  # noqa: ARG005
    "flip-crop-randaugment": lambda fill: over_basics(RandAugment(fill=fill)),
    "flip-crop-trivialaugment": lambda fill: over_basics(TrivialAugment(fill=fill)),
    "autoaugment": lambda fill: AutoAugment("imagenet", fill=fill),
    "autoaugment-cifar10": lambda fill: AutoAugment("cifar10", fill=fill),
    "autoaugment-svhn": lambda fill: AutoAugment("svhn", fill=fill),
    "autoaugment-imagenet": lambda fill: AutoAugment("imagenet", fill=fill),
    "simclr": lambda fill: simclr_chain(),  # noqa: ARG005
    "graphcl": lambda fill: graphcl(),  # noqa: ARG005
    "graph-randaugment": lambda fill: graph_randaugment(),  # noqa: ARG005
}
"""By name, with what geometry uncovers."""


def find(policy: str, fill: int = FILL) -> Policy:
    """A policy by its name, from its file, or from a run's folder."""
    if policy.lower() in NAMED:
        return NAMED[policy.lower()](fill)
    if not Path(policy).exists():
        hint = nearest(policy.lower(), NAMED)
        raise PolicyFileError(policy, "", f"there is no such file, and the names are {', '.join(NAMED)}{hint}")
    return load(policy)  # type: ignore[no-any-return]
