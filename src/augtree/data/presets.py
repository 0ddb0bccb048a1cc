"""Policies by name, as they are for a data set."""

from __future__ import annotations

from torch import Tensor

from augtree.data import Dataset
from augtree.policies.presets import find, graph_randaugment, over_basics
from augtree.transforms import AutoAugment, Chain
from augtree.transforms.base import Policy
from augtree.transforms.spaces import simclr_chain


def find_for(data: Dataset, policy: str) -> Policy:
    """A policy as `find` gives it, for a data set.

    "autoaugment" is the policy for CIFAR-10 or SVHN where the data is that, else ImageNet's; "randaugment" on graphs
    draws among their transforms, without masks where nodes have no features; "simclr" is without colours where
    pictures are not grey or RGB; crops have padding of an eighth of the side.
    """
    if policy.lower() == "simclr" and isinstance(data.samples, Tensor) and data.samples.shape[1] not in (1, 3):
        return simclr_chain(colours=False)
    if policy.lower() == "autoaugment":
        known = next((name for name in ("cifar10", "svhn") if data.name.lower().startswith(name)), "imagenet")
        return AutoAugment(known, fill=data.fill)
    if data.domain == "graph" and policy.lower() in ("randaugment", "graph-randaugment"):
        return graph_randaugment(features=any(getattr(graph, "x", None) is not None for graph in data.samples))
    found = find(policy, data.fill)
    if policy.lower().startswith("flip-crop") and isinstance(found, Chain) and isinstance(data.samples, Tensor):
        styles = [step for step, _ in found.pairs[2:]]
        return over_basics(*styles, pad=max(1, min(data.samples.shape[2:]) // 8))
    return found
