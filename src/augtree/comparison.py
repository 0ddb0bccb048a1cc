"""`compare` and `train`: policies side by side, the same budget for each, and one model to keep."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError, RunError, need, whole_number
from augtree.files import write_atomically
from augtree.policies import Forest
from augtree.policies.codec import Reader, to_json
from augtree.policies.named import find
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search import TreeResult
from augtree.search import resume as resume_search
from augtree.search.search import Watch, data_again, surroundings, task_again
from augtree.tasks import Classification
from augtree.tasks.metrics import METRICS
from augtree.tasks.trainer import State, Trainer
from augtree.transforms import AutoAugment, Identity, RandAugment, Transform, TrivialAugment
from augtree.transforms.base import Policy

Asked = Policy | str | Path | None
"""A policy as a user may give it: a value, a name, a file, or nothing."""
TRAIN_ON = ("train", "train+val")
FREE = (Identity, RandAugment, TrivialAugment, AutoAugment)
"""Policies of these kinds need no search."""


@dataclass(frozen=True)
class Line:
    """How one policy did: means over seeds, with their standard deviation."""

    policy: str
    seeds: int
    mean: float
    spread: float
    difference: float | None
    """To the best free policy, paired by seed; None for that policy itself."""
    difference_se: float | None
    worst_group: float | None
    val: float | None


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`: a row for each policy and seed, and what follows from them."""

    metric: str
    rows: Sequence[Mapping[str, Any]]
    free: Sequence[str]
    """The policies that need no search."""
    judged_on: str
    """The split that the table is about."""
    notes: Sequence[str] = ()

    @property
    def best_free(self) -> str | None:
        """The free policy that is best on validation data (without any, the first): the test data chooses nothing."""
        return self._best(self.free)

    def _best(self, names: Sequence[str]) -> str | None:
        scores = {name: self._mean(name, "val") for name in names}
        known = {name: score for name, score in scores.items() if score is not None}
        if not known:
            return names[0] if names else None
        return (max if METRICS[self.metric].higher_is_better else min)(known, key=lambda name: known[name])

    def lines(self) -> list[Line]:
        """A line for each policy, in the order in which they were given."""
        names = list(dict.fromkeys(row["policy"] for row in self.rows))
        return [self._line(name) for name in names]

    def _line(self, name: str) -> Line:
        mine = self._values(name)
        reference = self.best_free
        difference = error = None
        if reference is not None and name != reference:
            other = self._values(reference)
            pairs = np.array([mine[seed] - other[seed] for seed in mine if seed in other])
            difference = float(pairs.mean()) if len(pairs) else None
            error = float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else None
        values = np.array(list(mine.values()))
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        worst = self._mean(name, "worst_group")
        return Line(name, len(mine), float(values.mean()), spread, difference, error, worst, self._mean(name, "val"))

    def _values(self, name: str) -> dict[int, float]:
        return {row["seed"]: row[self.judged_on] for row in self.rows if row["policy"] == name}

    def _mean(self, name: str, column: str) -> float | None:
        found = [row[column] for row in self.rows if row["policy"] == name and row.get(column) is not None]
        return float(np.mean(found)) if found else None

    def verdict(self) -> str:
        """Whether the search helped, plainly; which of its policies is spoken of is chosen on validation data too."""
        lines = {line.policy: line for line in self.lines()}
        reference, best = self.best_free, self._best([name for name in lines if name not in self.free])
        if reference is None or best is None or lines[best].difference is None:
            return "There must be a free policy and another one, with a seed in common, for a verdict."
        sign = 1 if METRICS[self.metric].higher_is_better else -1
        ahead, noise = sign * (lines[best].difference or 0.0), lines[best].difference_se
        figures = f"{abs(ahead):.4f}{plus_minus(noise)}"
        if ahead == 0:
            return f"The search did not help: {best} does just as {reference}, which is free."
        if ahead < 0:
            return f"The search did not help: {best} is {figures} behind {reference}, which is free."
        chosen = "the best free policy" if lines[reference].val is not None else "which is free"
        doubt = ": not more than noise" if noise is None or ahead < 2 * noise else ""
        return f"{best} is {figures} ahead of {reference}, {chosen}{doubt}."

    def to_text(self) -> str:
        """The table, as Markdown."""
        lines, reference = self.lines(), self.best_free
        columns = {
            "policy": [line.policy for line in lines],
            f"{self.metric}, {self.judged_on}": [f"{line.mean:.4f} ± {line.spread:.4f}" for line in lines],
            "seeds": [str(line.seeds) for line in lines],
        }
        if reference is not None:
            columns[f"difference to {reference}"] = [signed(line.difference, line.difference_se) for line in lines]
        if any(line.worst_group is not None for line in lines):
            worst = [line.worst_group for line in lines]
            columns["worst group"] = ["" if value is None else f"{value:.4f}" for value in worst]
        wide = [max(map(len, [head, *cells])) for head, cells in columns.items()]
        rows = [list(columns), ["-" * width for width in wide], *zip(*columns.values(), strict=True)]
        return "\n".join(f"| {' | '.join(map(str.ljust, row, wide))} |" for row in rows)

    def to_csv(self) -> str:
        """A row for each policy and seed."""
        text = io.StringIO()
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def to_json(self) -> str:
        """Everything."""
        content = {
            "metric": self.metric,
            "judged_on": self.judged_on,
            "best_free": self.best_free,
            "verdict": self.verdict(),
            "lines": [vars(line) for line in self.lines()],
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def signed(difference: float | None, noise: float | None) -> str:
    """A difference with its standard error, for a table."""
    return "" if difference is None else f"{difference:+.4f}{plus_minus(noise)}"


def plus_minus(noise: float | None) -> str:
    """A standard error behind a number."""
    return "" if noise is None else f" ± {noise:.4f}"


def compare(
    data: Dataset,
    task: Classification | None = None,
    policies: Mapping[str, Asked] | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    train_on: str = "train",
    out: str | Path | None = None,
    watch: Watch = lambda *_, **__: None,
) -> Comparison:
    """Train a model with each policy, the same budget for each, and put them side by side.

    A policy is a value, a name ("trivialaugment"), a file, or None for no augmentation; without any, the free
    policies. `train_on="train+val"` trains on the validation samples too (then nothing is left to choose by).
    """
    task = task or Classification()
    if train_on not in TRAIN_ON:
        raise ArgumentError("train_on", f"must be one of {', '.join(TRAIN_ON)}", train_on)
    chosen = seeds_of(seeds)
    given: Mapping[str, Asked] = free_policies(data) if policies is None else policies
    found = checked_policies(given, data)
    free = [name for name, policy in found.items() if isinstance(policy, FREE)]
    judged_on = split_to_judge(data, train_on)
    spec = {
        "version": VERSION,
        "kind": "compare",
        "data": {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint},
        "task": task.spec(),
        "policies": {name: to_json(policy) for name, policy in found.items()},
        "order": list(found),
        "seeds": chosen,
        "train_on": train_on,
    }
    trainer = task.prepare(data)
    spec |= {"begins": trainer.identity(chosen[0])}
    with Run.begin(out, spec) as run:
        run.meter.read = lambda: (trainer.passes.forward, trainer.passes.backward)
        notes = list(surroundings(run, trainer))
        if judged_on == "val":
            notes.append("There is no test data: validation data that a search has seen favours what it found.")
        watch("plan", trainings=len(found) * len(chosen), notes=notes)
        rows = []
        for seed in chosen:
            for name, policy in found.items():
                unit = run.unit(f"train/{name}/{seed}", measured(trainer, policy, seed, train_on))
                rows.append({"policy": name, "seed": seed, **unit.value})
                watch("trained", **rows[-1])
        result = Comparison(task.metric, rows, free, judged_on, notes)
        run.write("comparison.csv", result.to_csv().encode())
        run.write("comparison.json", result.to_json().encode())
        run.tell("status", "done")
        return result


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


def checked_policies(given: Mapping[str, Asked], data: Dataset) -> dict[str, Policy]:
    """The policies as values, which work on such data."""
    if not isinstance(given, Mapping) or not given:
        raise ArgumentError("policies", "must map at least one name to a policy", given)
    found = {}
    for name, policy in given.items():
        if not isinstance(name, str) or not name.isprintable() or not name:
            raise ArgumentError("policies", "must have names that are printable text", name)
        found[name] = policy_of(policy, f"policies/{name}", data.fill)
        check_domain(f"policies/{name}", found[name], data)
    return found


def check_domain(place: str, policy: Policy, data: Dataset) -> None:
    """Raise for a policy of graphs where the data are pictures, and the other way round."""
    trees = [member.tree for member in policy.groups.values()] if isinstance(policy, Forest) else [policy]
    domains = {getattr(tree, "domain", "any") for tree in trees} - {"any"}
    if domains - {data.domain}:
        raise ArgumentError(place, f"must work on {data.domain}s as the data does", str(policy))
    missing = set(data.group_names) - set(policy.groups) if isinstance(policy, Forest) else set()
    if missing:
        raise ArgumentError(place, f"must have a tree for the group {min(missing)}", str(policy))


def measured(trainer: Trainer, policy: Policy, seed: int, train_on: str) -> Callable[[], tuple[dict[str, Any], None]]:
    """A training and what it reaches on each split; in several groups, also in the worst."""
    data, metric = trainer.data, trainer.task.metric

    def work() -> tuple[dict[str, Any], None]:
        rows = data.indices("train")
        if train_on == "train+val":
            rows = np.concatenate([rows, data.indices("val")])
        state = trainer.fit(policy, seed, rows=rows)
        out: dict[str, Any] = {}
        for split in ("val", "test"):
            judged = data.indices(split)
            if len(judged) and not (split == "val" and train_on == "train+val"):
                out |= {split: trainer.measures(state, judged)[metric]}
        if len(data.group_names) > 1:
            out["worst_group"] = worst_group(trainer, state, "test" if "test" in out else "val")
        return out, None

    return work


def worst_group(trainer: Trainer, state: State, split: str) -> float | None:
    """The metric in the group where it is worst."""
    data, metric = trainer.data, METRICS[trainer.task.metric]
    found = []
    for group in data.group_names:
        rows = data.indices(split, group)
        if len(rows):
            try:
                found.append(trainer.measures(state, rows)[metric.name])
            except ArgumentError:  # a group in which the metric does not exist
                continue
    return (min if metric.higher_is_better else max)(found, default=None)


def free_policies(data: Dataset) -> Mapping[str, Asked]:
    """The policies that need no search."""
    return {"none": None} | ({n: n for n in ("randaugment", "trivialaugment")} if data.domain == "image" else {})


def policy_of(policy: Asked, place: str, fill: int) -> Policy:
    """A policy as a value, from a name (`fill` is what geometry uncovers), or from a file."""
    if policy is None:
        return Identity()
    if not isinstance(policy, Policy | str | Path):
        raise ArgumentError(place, "must be a policy, a name, a file or None", policy)
    return policy if isinstance(policy, Policy) else find(str(policy), fill)


@dataclass(frozen=True)
class Trained:
    """A model and how it does on each split; it takes pictures normalised by `mean` and `std` of 0..1."""

    model: nn.Module
    metrics: Mapping[str, Mapping[str, float]]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def train(
    data: Dataset,
    task: Classification | None = None,
    policy: Asked = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    watch: Watch = lambda *_, **__: None,
) -> Trained:
    """Train one model with a policy. With `out`, its weights (safetensors), policy and metrics go to that folder."""
    task, found = task or Classification(), policy_of(policy, "policy", data.fill)
    check_domain("policy", found, data)
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    about = {"policy.json": to_json(found).encode()}
    folder = None if out is None else made_folder(out)
    trainer = task.prepare(data)
    steps = trainer.total_steps
    watch("plan", steps=steps)
    state = trainer.train(
        trainer.fresh(seed), found, task.rates(steps), seed, tick=lambda done: watch("step", done=done)
    )
    judged = [split for split in ("val", "test") if len(data.indices(split))]
    metrics = {split: trainer.measures(state, data.indices(split)) for split in judged}
    result = Trained(trainer.module(state), metrics, *trainer.mean_and_std())
    if folder is not None:
        for name, content in {**files_of(result, data, task), **about}.items():
            write_atomically(folder / name, content)
    return result


def made_folder(out: str | Path) -> Path:
    """A folder for results, before the work is done for them."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        rule = f"must be a folder that can be made ({problem.strerror})"
        raise ArgumentError("--out", rule, str(out)) from problem
    return Path(out)


def files_of(trained: Trained, data: Dataset, task: Classification) -> dict[str, bytes]:
    """A trained model as files."""
    # Copies: the weights are parts of one long vector, and tied ones are the same part twice.
    weights = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in trained.model.state_dict().items()
    }
    about = {
        "metrics": trained.metrics,
        "mean": trained.mean,
        "std": trained.std,
        "classes": data.classes,
        "task": task.spec(),
    }
    return {
        "model.safetensors": need("safetensors.torch", "cli").save(weights),
        "training.json": (json.dumps(about, indent=1, allow_nan=False) + "\n").encode(),
    }


def resume(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Classification | None = None,
    transforms: Iterable[Transform | type[Transform]] = (),
    budget: str | float | None = None,
    watch: Watch = lambda *_, **__: None,
) -> TreeResult | Comparison:
    """Go on with a search or a comparison that was stopped; the result is the one that it would have given.

    A run on arrays needs its `data` again, a run with a model of your own its `task`, policies with transforms of
    your own these `transforms`. A search that ended early goes on with a larger `budget`.
    """
    spec = read_spec(Path(folder))
    if spec.get("kind") == "search":
        return resume_search(folder, data=data, task=task, transforms=transforms, budget=budget, watch=watch)
    if spec.get("kind") != "compare":
        raise RunError(f"{folder} must be the run of a search or a comparison, got {spec.get('kind')!r}")
    data = data_again(spec["data"], Path(folder), data)
    reader = Reader(Path(folder) / "spec.json", transforms)
    return compare(
        data,
        task or task_again(spec["task"], reader),
        {name: reader.policy(spec["policies"][name]) for name in spec["order"]},
        seeds=spec["seeds"],
        train_on=spec["train_on"],
        out=folder,
        watch=watch,
    )
