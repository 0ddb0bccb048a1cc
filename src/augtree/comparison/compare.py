"""`compare`: a training with each policy and seed, the same budget for each; and `resume`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.ways import (
    Asked,
    Way,
    check_domain,
    fitted,
    free_policies,
    is_free,
    or_failed,
    seeds_of,
    way_of,
)
from augtree.comparison.result import Comparison
from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError, TaskError
from augtree.forests import Weighted
from augtree.policies.codec import to_json
from augtree.runs.store import VERSION, Run
from augtree.search.search import Watch, check_data, surroundings
from augtree.tasks import Classification, Contrastive, Task
from augtree.training.metrics import METRICS
from augtree.training.trainer import State, Trainer
from augtree.transforms import (
    Identity,
)
from augtree.transforms.base import Policy

if TYPE_CHECKING:
    pass

TRAIN_ON = ("train", "train+val")


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
