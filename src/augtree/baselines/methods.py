"""All that can be a row of a comparison: policies, forests with learned weights, controls, searches, methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from augtree.baselines.base import Baseline
from augtree.baselines.catalogue import CONTROLS, control_of, is_known, is_method, names
from augtree.baselines.controls import Control, Longer, Searched, Soup, restore_control
from augtree.baselines.parts import Parts
from augtree.baselines.registry import METHODS, restore
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import ArgumentError, PolicyFileError, TaskError, nearest, whole_number
from augtree.forests import Weighted
from augtree.forests.weighted import restore_weighted, weighted_of_run
from augtree.policies import Forest
from augtree.policies.codec import Reader
from augtree.policies.presets import graph_randaugment
from augtree.tasks import Classification, Task
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
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

PolicyLike = Policy | Weighted | Control | Baseline | str | Path | None
"""A policy as a user may write it: a value, a name, a file, the folder of a run, a control, a method, or None."""
Method = Policy | Weighted | Control | Baseline
"""A policy, a forest whose weights are learned, a control, or a method."""
FREE = (Identity, RandAugment, TrivialAugment, AutoAugment, GraphCL)
"""Policies of these kinds need no search."""


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds: a number of them from 0 on, or the seeds themselves."""
    if isinstance(seeds, int | np.integer):
        return list(range(whole_number("seeds", seeds, 1, 1000)))
    distinct = [whole_number(f"seeds/{i}", seed, 0, 2**63 - 1) for i, seed in enumerate(seeds)]
    if not distinct or len(set(distinct)) < len(distinct):
        raise ArgumentError("seeds", "must be at least one, and all different", distinct)
    return distinct


def check_names(policies: Any, rule: str, reserved: Sequence[str] = ()) -> Mapping[str, PolicyLike]:
    """Policies by name, as they are, or an ArgumentError with a rule; some names may be reserved."""
    if not isinstance(policies, Mapping) or not policies:
        raise ArgumentError("policies", rule, policies)
    for name in policies:
        if not isinstance(name, str) or not name.isprintable() or not name or name in reserved:
            other = f", other than {' and '.join(reserved)}" if reserved else ""
            raise ArgumentError("policies", f"must have names that are printable text{other}", name)
    return policies


def method_of(policy: PolicyLike, place: str, data: Dataset, task: Task | None = None) -> Method:
    """The method that a user means; the run of a forest stands for its forest with learned weights."""
    if isinstance(policy, Weighted | Longer | Soup | Searched | Baseline):
        return policy
    if isinstance(policy, str):
        check_known(policy)
        if policy.lower() in METHODS:
            return METHODS[policy.lower()]()
        if policy.lower() in CONTROLS:
            return control_of(policy.lower(), data, task)
    is_folder = isinstance(policy, str | Path) and not is_known(str(policy)) and Path(policy).is_dir()
    forest = weighted_of_run(str(policy)) if is_folder else None
    return policy_of(policy, place, data) if forest is None else forest


def check_known(policy: str) -> None:
    """Raise for a text that is neither a name nor a file."""
    if not is_known(policy) and not Path(policy).exists():
        hint = nearest(policy.lower(), names())
        raise PolicyFileError(policy, "", f"there is no such file, and the names are {', '.join(names())}{hint}")


def check_fits(place: str, method: Baseline, task: Task, data: Dataset) -> None:
    """Raise for a method that does not fit a task or data, with its place."""
    try:
        method.check(task, data)
    except ArgumentError as error:
        where = "" if place == f"policies/{error.field}" else f": {error.field}"
        raise ArgumentError(f"{place}{where}", *error.args[1:]) from error


def check_domain(place: str, policy: Policy, data: Dataset) -> None:
    """Raise for a policy that does not work on such samples, or has no tree for a group."""
    trees = [member.tree for member in policy.groups.values()] if isinstance(policy, Forest) else [policy]
    domains = {getattr(tree, "domain", "any") for tree in trees} - {"any"}
    if domains - {data.domain}:
        raise ArgumentError(place, f"must work on {data.domain}s as the data does", str(policy))
    missing = set(data.group_names) - set(policy.groups) if isinstance(policy, Forest) else set()
    if missing:
        raise ArgumentError(place, f"must have a tree for the group {min(missing)}", str(policy))


def fit(
    trainer: Trainer, method: Method, seed: int, train_on: str, parts: Parts | None = None
) -> tuple[State, dict[str, Any]]:
    """A whole training by a method, and what it has learned beside the model, such as the groups' weights."""
    data, parts = trainer.data, parts or Parts(trainer)
    if isinstance(method, Baseline):
        return method.fit_in_parts(trainer, seed, parts)
    if isinstance(method, Weighted):
        return fit_weighted(trainer, method, seed)
    if isinstance(method, Searched):
        return method.fit(trainer, seed, parts), {}
    if isinstance(method, Longer | Soup):
        if method.policy is None:
            raise TaskError("the best free policy must be known, but every training with a free policy failed")
        return method.fit(trainer, method.policy, seed), {}
    rows = trainer.rows
    if train_on == "train+val":
        rows = np.concatenate([rows, np.setdiff1d(data.indices("val"), rows)])
    return trainer.fit(method, seed, rows=rows), {}


def fit_weighted(trainer: Trainer, method: Weighted, seed: int) -> tuple[State, dict[str, Any]]:
    """A training of a forest in its own groups, and the weights that it ended with."""
    grouped = method.on(trainer.data)
    own = trainer if grouped is trainer.data else trainer.task.prepare(grouped)
    end = method.fit(own, seed)
    if own is not trainer:
        trainer.passes.forward += own.passes.forward
        trainer.passes.backward += own.passes.backward
    return end.theta, {f"weight {name}": float(w) for name, w in zip(grouped.group_names, end.w, strict=True)}


def free_policies(data: Dataset, task: Task | None = None) -> Mapping[str, PolicyLike]:
    """The policies that need no search, by name.

    Parameters
    ----------
    data
        The data set: graphs have other policies than pictures.
    task
        The task, whose usual policies they are; by default `Classification()`.

    Examples
    --------
    >>> import augtree as at
    >>> from augtree.comparison import free_policies
    >>> list(free_policies(at.data.load("digits", train=60, val=60)))
    ['none', 'randaugment', 'trivialaugment']

    """
    return {name: name for name in (task or Classification()).free[data.domain]}


def is_free(policy: object) -> bool:
    """Whether a policy needs no search: a published one, alone or after a flip and a crop."""
    if isinstance(policy, Chain):
        steps = [step for step, p in policy.pairs if p == 1]
        if len(steps) == len(policy.pairs) and all(isinstance(step, (*FREE, Flip, PadCrop)) for step in steps):
            return True
    simclr = (simclr_chain(), simclr_chain(colours=False))
    return isinstance(policy, FREE) or policy in (*simclr, graph_randaugment(), graph_randaugment(features=False))


def policy_of(policy: PolicyLike, place: str, data: Dataset) -> Policy:
    """A policy as a value.

    Parameters
    ----------
    policy
        A value, a preset ("trivialaugment"), a file, the folder of a run, or None for no augmentation.
    place
        What an error calls the argument.
    data
        The data set: some presets differ with its size and channels.

    Examples
    --------
    >>> import augtree as at
    >>> from augtree.comparison import policy_of
    >>> print(policy_of("randaugment", "policy", at.data.load("digits", train=60, val=60)))
    RandAugment

    """
    if policy is None:
        return Identity()
    if not isinstance(policy, Policy | str | Path):
        raise ArgumentError(place, "must be a policy, a name, a file or None", policy)
    if isinstance(policy, str) and is_method(policy) and not Path(policy).exists():
        raise ArgumentError(place, "must be a policy, and not a method, which only compare trains by", policy)
    return policy if isinstance(policy, Policy) else find_for(data, str(policy))


def restore_method(spec: str | dict[str, Any], reader: Reader) -> Method:
    """A method from the specification of a run."""
    if isinstance(spec, str):
        return reader.policy(spec)
    if "way" not in spec:
        return restore_weighted(spec, reader)
    return restore_control(spec, reader) if spec["way"] in CONTROLS else restore(spec, reader)
