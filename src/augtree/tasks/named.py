"""Policies by name, as they are for a data set."""

from __future__ import annotations

from torch import Tensor

from augtree.data import Dataset
from augtree.policies.named import find
from augtree.transforms.base import Policy
from augtree.transforms.spaces import simclr_chain


def find_for(data: Dataset, policy: str) -> Policy:
    """A policy as `find` gives it, for a data set: "simclr" without colours where pictures are not grey or RGB."""
    if policy.lower() == "simclr" and isinstance(data.samples, Tensor) and data.samples.shape[1] not in (1, 3):
        return simclr_chain(colours=False)
    return find(policy, data.fill)
