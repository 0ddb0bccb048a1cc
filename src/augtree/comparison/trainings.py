"""`compare`: a training with each policy and seed, the same budget for each; and `resume`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from augtree.comparison.controls import Control, Longer, Searched, Soup, control_again
from augtree.comparison.table import Comparison
from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError, RunError, TaskError, whole_number
from augtree.policies import Forest
from augtree.policies.codec import Reader, to_json
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search import TreeResult
from augtree.search import resume as resume_search
from augtree.search.scorers.base import LONGEST_REASON
from augtree.search.search import Watch, check_data, data_again, surroundings, task_again
from augtree.tasks import Classification, Contrastive, Task
from augtree.tasks.metrics import METRICS
from augtree.tasks.named import find_for
from augtree.tasks.trainer import State, Trainer
from augtree.transforms import (
    AutoAugment,
    Chain,
    Flip,
    GraphCL,
    Identity,
    PadCrop,
    RandAugment,
    Transform,
    TrivialAugment,
)
from augtree.transforms.base import Policy
from augtree.transforms.spaces import simclr_chain
from augtree.weighting import ForestResult, Weighted
from augtree.weighting.forest import resume as resume_forest
from augtree.weighting.weighted import weighted_again, weighted_of_run

if TYPE_CHECKING:
    from augtree.comparison.evaluation import Evaluation

Asked = Policy | Weighted | Control | str | Path | None
"""A policy as a user may give it: a value, a name, a file, the folder of a run, a control, or nothing."""
Way = Policy | Weighted | Control
"""A way to train: with a policy, with a forest whose weights are learned, or a control."""
TRAIN_ON = ("train", "train+val")
FREE = (Identity, RandAugment, TrivialAugment, AutoAugment, GraphCL)
"""Policies of these kinds need no search."""


def compare(
    data: Dataset,
    task: Task | None = None,
    policies: Mapping[str, Asked] | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    train_on: str = "train",
    out: str | Path | None = None,
    watch: Watch = lambda *_, **__: None,
) -> Comparison:
    """Train a model with each policy, the same budget for each, and put them side by side.

    A policy is a value, a name ("trivialaugment"), a file, the folder of a run, or None for no augmentation; without
    any, the free policies. A `Weighted` forest learns its weights in every training. `Longer`, `Soup` and `Searched`
    are controls that take more than one training, and searches; the cost of each row is told.
    `train_on="train+val"` trains on the validation samples too (then nothing is left to choose by). A training that
    fails is marked so, with the reason, and the others go on.
    """
    task = task or Classification()
    if train_on not in TRAIN_ON:
        raise ArgumentError("train_on", f"must be one of {', '.join(TRAIN_ON)}", train_on)
    if train_on != "train" and isinstance(task, Contrastive):
        rule = "must be train for a contrastive task, whose classifier and neighbours are the training samples"
        raise ArgumentError("train_on", rule, train_on)
    chosen = seeds_of(seeds)
    given: Mapping[str, Asked] = free_policies(data, task) if policies is None else policies
    found = checked_policies(given, data)
    free = [name for name, policy in found.items() if is_free(policy)]
    judged_on = split_to_judge(data, train_on)
    spec = {
        "version": VERSION,
        "kind": "compare",
        "data": {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint},
        "task": task.spec(),
        "policies": {name: to_json(p) if isinstance(p, Policy) else p.spec() for name, p in found.items()},
        "order": list(found),
        "seeds": chosen,
        "train_on": train_on,
    }
    if train_on != "train" and not all(isinstance(policy, Policy) for policy in found.values()):
        raise ArgumentError(
            "train_on", "must be train where the validation data is needed to learn or choose", train_on
        )
    if not free and any(takes_best(way) for way in found.values()):
        raise ArgumentError("policies", "must have a free policy where a control takes the best of them", list(found))
    trainer = task.prepare(data)
    spec |= {"begins": trainer.identity(chosen[0])}
    with Run.begin(out, spec) as run:
        run.meter.read = lambda: (trainer.passes.forward, trainer.passes.backward)
        notes = list(surroundings(run, trainer))
        if judged_on == "val":
            notes.append("There is no test data: validation data that a search has seen favours what it found.")
        watch("plan", trainings=len(found) * len(chosen), notes=notes)
        done: dict[tuple[int, str], dict[str, Any]] = {}
        one = trainer.total_steps * trainer.passes_a_step
        for part in (free, [name for name in found if name not in free]):
            best = Comparison(task.metric, list(done.values()), free, judged_on).best_free if done else None
            for seed in chosen:
                for name in part:
                    way = filled(found[name], found.get(best or ""))
                    unit = run.unit(f"train/{name}/{seed}", measured(trainer, way, seed, train_on))
                    cost = round((unit.forward + unit.backward) / one, 3)
                    done[seed, name] = {"policy": name, "seed": seed, **unit.value, "cost": cost}
                    watch("trained", **done[seed, name])
            if best is not None and any(takes_best(way) for way in found.values()):
                notes.append(f"The best free policy, by validation data, is {best}.")
        rows = [done[seed, name] for seed in chosen for name in found]
        controls = [name for name, way in found.items() if isinstance(way, Longer | Soup)]
        finished = [name for name, way in found.items() if isinstance(way, Searched)]
        result = Comparison(task.metric, rows, free, judged_on, notes, controls, finished)
        run.write("comparison.csv", result.to_csv().encode())
        run.write("comparison.json", result.to_json().encode())
        run.tell("status", "done")
        if all("failed" in row for row in rows):
            raise TaskError(f"every training failed, the first with: {rows[0]['failed']}")
        return result


def takes_best(way: Way) -> bool:
    """Whether it is a control for the best free policy."""
    return isinstance(way, Longer | Soup) and way.policy is None


def filled(way: Way, best: Way | None) -> Way:
    """A control that is for the best free policy, with that policy."""
    if isinstance(way, Longer | Soup) and way.policy is None and isinstance(best, Policy):
        return replace(way, policy=best)
    return way


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds: so many from 0, or those that are given."""
    if isinstance(seeds, int | np.integer):
        return list(range(whole_number("seeds", seeds, 1, 1000)))
    found = [whole_number(f"seeds/{i}", seed, 0, 2**63 - 1) for i, seed in enumerate(seeds)]
    if not found or len(set(found)) < len(found):
        raise ArgumentError("seeds", "must be at least one, and all different", found)
    return found


def split_to_judge(data: Dataset, train_on: str) -> str:
    """The split that the table is about: test, or validation where there is none."""
    counts = data.counts
    if train_on == "train+val" and not (counts["test"] and counts["val"]):
        raise DataError(
            f"{data.name} must have validation samples to train on and test samples to judge by, got {counts}"
        )
    if not counts["test"] and not counts["val"]:
        raise DataError(f"{data.name} must have validation or test samples to judge by, got {counts}")
    return "test" if counts["test"] else "val"


def checked_policies(given: Mapping[str, Asked], data: Dataset) -> dict[str, Way]:
    """The policies as values, which work on such data."""
    if not isinstance(given, Mapping) or not given:
        raise ArgumentError("policies", "must map at least one name to a policy", given)
    found = {}
    for name, policy in given.items():
        if not isinstance(name, str) or not name.isprintable() or not name:
            raise ArgumentError("policies", "must have names that are printable text", name)
        found[name] = way = way_of(policy, f"policies/{name}", data)
        if isinstance(way, Weighted):
            check_domain(f"policies/{name}", way.forest, way.on(data))
        elif isinstance(way, Searched):
            check_data(data, way.space)
        else:
            policy = way if isinstance(way, Policy) else way.policy
            check_domain(f"policies/{name}", policy or Identity(), data)
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


def measured(trainer: Trainer, policy: Way, seed: int, train_on: str) -> Callable[[], tuple[dict[str, Any], None]]:
    """A training and what it reaches on each split; in several groups, also in the worst. Or why it failed."""
    data, metric = trainer.data, trainer.task.metric

    def trained() -> dict[str, Any]:
        state, out = fitted(trainer, policy, seed, train_on)
        for split in ("val", "test"):
            judged = data.indices(split)
            if len(judged) and not (split == "val" and train_on == "train+val"):
                out |= {split: trainer.measures(state, judged)[metric]}
        if len(data.group_names) > 1:
            out |= by_group(trainer, state, "test" if "test" in out else "val")
        return out

    return lambda: (or_failed(trained), None)


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


def by_group(trainer: Trainer, state: State, split: str) -> dict[str, float | None]:
    """The metric in each group, and where it is worst."""
    data, metric = trainer.data, METRICS[trainer.task.metric]
    found: dict[str, float | None] = {}
    for group in data.group_names:
        rows = data.indices(split, group)
        if len(rows):
            try:
                found[f"group {group}"] = trainer.measures(state, rows)[metric.name]
            except ArgumentError:  # a group in which the metric does not exist
                continue
    worst = (min if metric.higher_is_better else max)((v for v in found.values() if v is not None), default=None)
    return {"worst_group": worst, **found}


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


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Iterable[Transform | type[Transform]] = (),
    budget: str | float | None = None,
    workers: int = 1,
    watch: Watch = lambda *_, **__: None,
) -> TreeResult | ForestResult | Comparison | Evaluation:
    """Go on with a search, a forest, a comparison or an evaluation that was stopped, to what it would have given.

    A run on arrays needs its `data` again, a run with a model of your own its `task`, policies with transforms of
    your own these `transforms`. A search that ended early goes on with a larger `budget`. The groups of a forest are
    searched by `workers`, and the classifiers of an evaluation fitted.
    """
    spec = read_spec(Path(folder))
    if spec.get("kind") == "search":
        return resume_search(
            folder, data=data, task=task, transforms=transforms, budget=budget, workers=workers, watch=watch
        )
    if spec.get("kind") in ("forest", "fit"):
        return resume_forest(
            folder, data=data, task=task, transforms=transforms, budget=budget, workers=workers, watch=watch
        )
    if spec.get("kind") == "evaluate":
        from augtree.comparison.evaluation import resume_evaluation

        return resume_evaluation(
            folder, data=data, task=task, transforms=list(transforms), workers=workers, watch=watch
        )
    if spec.get("kind") != "compare":
        rule = "must be the run of a search, a forest, a comparison or an evaluation"
        raise RunError(f"{folder} {rule}, got {spec.get('kind')!r}")
    data = data_again(spec["data"], Path(folder), data)
    reader = Reader(Path(folder) / "spec.json", transforms)
    return compare(
        data,
        task or task_again(spec["task"], reader),
        {name: way_again(spec["policies"][name], reader) for name in spec["order"]},
        seeds=spec["seeds"],
        train_on=spec["train_on"],
        out=folder,
        watch=watch,
    )


def way_again(text: str | dict[str, Any], reader: Reader) -> Way:
    """A way to train, from a run's specification."""
    if isinstance(text, str):
        return reader.policy(text)
    return control_again(text, reader) if "way" in text else weighted_again(text, reader)
