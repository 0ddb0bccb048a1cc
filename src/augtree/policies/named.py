"""The free policies: those that need no search, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from augtree.errors import PolicyFileError, nearest
from augtree.policies.codec import load
from augtree.transforms import AutoAugment, Identity, Policy, RandAugment, TrivialAugment
from augtree.transforms.images import FILL

NAMED: dict[str, Callable[[int], Policy]] = {
    "none": lambda fill: Identity(),  # noqa: ARG005
    "randaugment": lambda fill: RandAugment(fill=fill),
    "trivialaugment": lambda fill: TrivialAugment(fill=fill),
    "autoaugment-cifar10": lambda fill: AutoAugment("cifar10", fill=fill),
    "autoaugment-svhn": lambda fill: AutoAugment("svhn", fill=fill),
    "autoaugment-imagenet": lambda fill: AutoAugment("imagenet", fill=fill),
}
"""By name, with what geometry uncovers."""


def find(policy: str, fill: int = FILL) -> Policy:
    """A policy by its name, or from its file."""
    if policy.lower() in NAMED:
        return NAMED[policy.lower()](fill)
    if not Path(policy).exists():
        hint = nearest(policy.lower(), NAMED)
        raise PolicyFileError(policy, "", f"there is no such file, and the names are {', '.join(NAMED)}{hint}")
    return load(policy)  # type: ignore[no-any-return]
