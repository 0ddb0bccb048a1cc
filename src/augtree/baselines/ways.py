"""Ways to train a model: with a policy, with a forest whose weights are learned, or by a control."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from augtree.baselines.controls import Control, Longer, Searched, Soup, control_again
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import ArgumentError, TaskError, whole_number
from augtree.forests import Weighted
from augtree.forests.weighted import weighted_again, weighted_of_run
from augtree.policies import Forest
from augtree.policies.codec import Reader
from augtree.search.scorers.base import LONGEST_REASON
from augtree.tasks import Classification, Task
from augtree.training.trainer import State, Trainer
from augtree.transforms import (
    AutoAugment,
    Chain,
    Flip,
    GraphCL,
    Identity,
    PadCrop,
    RandAugment,
    TrivialAugment,
)
from augtree.transforms.base import Policy
from augtree.transforms.spaces import simclr_chain

if TYPE_CHECKING:
    pass


Asked = Policy | Weighted | Control | str | Path | None
"""A policy as a user may give it: a value, a name, a file, the folder of a run, a control, or nothing."""


Way = Policy | Weighted | Control
"""A way to train: with a policy, with a forest whose weights are learned, or a control."""


FREE = (Identity, RandAugment, TrivialAugment, AutoAugment, GraphCL)
"""Policies of these kinds need no search."""


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds: so many from 0, or those that are given."""
    if isinstance(seeds, int | np.integer):
        return list(range(whole_number("seeds", seeds, 1, 1000)))
    found = [whole_number(f"seeds/{i}", seed, 0, 2**63 - 1) for i, seed in enumerate(seeds)]
    if not found or len(set(found)) < len(found):
        raise ArgumentError("seeds", "must be at least one, and all different", found)
    return found


def way_of(policy: Asked, place: str, data: Dataset) -> Way:
    """A way to train; the run of a forest stands for how it trained."""
    if isinstance(policy, Weighted | Longer | Soup | Searched):
        return policy
    found = weighted_of_run(policy) if isinstance(policy, str | Path) and Path(policy).is_dir() else None
    return policy_of(policy, place, data) if found is None else found


def check_domain(place: str, policy: Policy, data: Dataset) -> None:
    """Raise for a policy of graphs where the data are pictures, and the other way round."""
    trees = [member.tree for member in policy.groups.values()] if isinstance(policy, Forest) else [policy]
    domains = {getattr(tree, "domain", "any") for tree in trees} - {"any"}
    if domains - {data.domain}:
        raise ArgumentError(place, f"must work on {data.domain}s as the data does", str(policy))
    missing = set(data.group_names) - set(policy.groups) if isinstance(policy, Forest) else set()
    if missing:
        raise ArgumentError(place, f"must have a tree for the group {min(missing)}", str(policy))


def or_failed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What some work gives, or why it failed."""
    try:
        return work()
    except (MemoryError, torch.OutOfMemoryError, OSError):
        raise  # nothing that the policy has to answer for
    except Exception as error:
        return {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]}


def fitted(trainer: Trainer, policy: Way, seed: int, train_on: str) -> tuple[State, dict[str, Any]]:
    """A whole training, and the weights where some were learned."""
    data = trainer.data
    if isinstance(policy, Weighted):
        grouped = policy.on(data)
        own = trainer if grouped is data else trainer.task.prepare(grouped)
        at = policy.fit(own, seed)
        if own is not trainer:
            trainer.passes.forward += own.passes.forward
            trainer.passes.backward += own.passes.backward
        return at.theta, {f"weight {name}": float(w) for name, w in zip(grouped.group_names, at.w, strict=True)}
    if isinstance(policy, Searched):
        return policy.fit(trainer, data, seed), {}
    if isinstance(policy, Longer | Soup):
        if policy.policy is None:
            raise TaskError("the best free policy must be known, but every training with a free policy failed")
        return policy.fit(trainer, policy.policy, seed), {}
    rows = trainer.rows
    if train_on == "train+val":
        rows = np.concatenate([rows, np.setdiff1d(data.indices("val"), rows)])
    return trainer.fit(policy, seed, rows=rows), {}


def free_policies(data: Dataset, task: Task | None = None) -> Mapping[str, Asked]:
    """The policies that need no search."""
    return {name: name for name in (task or Classification()).free[data.domain]}


def is_free(policy: object) -> bool:
    """Whether a policy needs no search: published ones, alone or after a flip and a crop."""
    if isinstance(policy, Chain):
        steps = [step for step, p in policy.pairs if p == 1]
        if len(steps) == len(policy.pairs) and all(isinstance(step, (*FREE, Flip, PadCrop)) for step in steps):
            return True
    return isinstance(policy, FREE) or policy in (simclr_chain(), simclr_chain(colours=False))


def policy_of(policy: Asked, place: str, data: Dataset) -> Policy:
    """A policy as a value, from a name (as it is for this data), or from a file."""
    if policy is None:
        return Identity()
    if not isinstance(policy, Policy | str | Path):
        raise ArgumentError(place, "must be a policy, a name, a file or None", policy)
    return policy if isinstance(policy, Policy) else find_for(data, str(policy))


def way_again(text: str | dict[str, Any], reader: Reader) -> Way:
    """A way to train, from a run's specification."""
    if isinstance(text, str):
        return reader.policy(text)
    return control_again(text, reader) if "way" in text else weighted_again(text, reader)
