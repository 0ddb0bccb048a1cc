"""The free policies: those that need no search, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from augtree.errors import PolicyFileError, nearest
from augtree.policies.codec import load
from augtree.transforms import AutoAugment, Identity, Policy, RandAugment, TrivialAugment

NAMED: dict[str, Callable[[], Policy]] = {
    "none": Identity,
    "randaugment": RandAugment,
    "trivialaugment": TrivialAugment,
    "autoaugment-cifar10": lambda: AutoAugment("cifar10"),
    "autoaugment-svhn": lambda: AutoAugment("svhn"),
    "autoaugment-imagenet": lambda: AutoAugment("imagenet"),
}


def find(policy: str) -> Policy:
    """A policy by its name, or from its file."""
    if policy.lower() in NAMED:
        return NAMED[policy.lower()]()
    if not Path(policy).exists():
        hint = nearest(policy.lower(), NAMED)
        raise PolicyFileError(policy, "", f"there is no such file, and the names are {', '.join(NAMED)}{hint}")
    return load(policy)  # type: ignore[no-any-return]
