"""`evaluate`: encoders trained without labels on each policy, judged by a protocol that many papers use."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from augtree.comparison.table import figure
from augtree.comparison.trainings import Asked, check_domain, free_policies, is_free, policy_of, seeds_of
from augtree.data import Dataset
from augtree.errors import ArgumentError, DataError, RunError, whole_number
from augtree.policies.codec import Reader, to_json
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search.search import Watch, data_again, surroundings, task_again
from augtree.tasks import Contrastive, Task
from augtree.tasks.contrastive import LABEL_FREE, ContrastiveTrainer
from augtree.tasks.evaluation import Protocol, find_protocol, folds_of, judge_fold
from augtree.tasks.trainer import Rows, State
from augtree.transforms import Transform
from augtree.transforms.base import Policy

RANDOM, PRETRAINED = "random encoder", "pretrained features"
"""Rows without any training of ours: fresh weights, and those of the file that the task begins with."""


def evaluate(
    data: Dataset,
    task: Contrastive | None = None,
    policies: Mapping[str, Asked] | Policy | str | None = None,
    *,
    protocol: str = "graphcl",
    seeds: int | Sequence[int] = 5,
    seen: ArrayLike | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    watch: Watch = lambda *_, **__: None,
) -> Evaluation:
    """Train an encoder with each policy and seed, without labels, and judge its features by a protocol.

    `protocol` is graphcl or tree-paper (stratified ten-fold over all samples; the encoder is trained on all of them,
    without labels), or linear or svm (the data's own training and test samples). Without a task, the protocol's own.
    Beside the policies (without any, the free ones) stand a random encoder and, where the task begins with weights
    from a file, these.

    `seen` are the samples whose labels a search has seen: they are in no fold, for no row of the table. Where it is
    not given: what the searches saw whose folders are among the policies (nothing, if they were label-free), and for
    policies that are neither free nor such a folder the training and validation samples of `data`.
    """
    how = find_protocol(protocol)
    task = how.task() if task is None else task
    if not isinstance(task, Contrastive):
        raise ArgumentError(
            "task", "must be a contrastive one: its encoder is what is evaluated", type(task).__name__
        )
    if how.folds is not None:
        task = replace(task, samples="all")
    given = as_mapping(policies, data, task)
    found = {name: checked(name, policy, data) for name, policy in given.items()}
    hidden = seen_rows(seen, data) if seen is not None else seen_by_searches(given, found, data)
    chosen, workers = seeds_of(seeds), whole_number("workers", workers, 1, 1024)
    for seed in chosen:
        list(folds_of(how, data, hidden, seed))  # what cannot be split is said before anything is trained
    spec = {
        "version": VERSION,
        "kind": "evaluate",
        "data": {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint},
        "task": task.spec(),
        "protocol": protocol,
        "policies": {name: to_json(policy) for name, policy in found.items()},
        "order": list(found),
        "seeds": chosen,
        "seen": hidden.tolist(),
    }
    trainer = task.prepare(data)
    spec |= {"begins": trainer.identity(chosen[0])}
    with Run.begin(out, spec) as run:
        bench = Table(trainer, how, hidden, workers)
        run.meter.read = lambda: bench.passes
        notes = [*surroundings(run, trainer), told(how, task, data, hidden)]
        ways = {**bench.untrained(), **{name: bench.trained(policy) for name, policy in found.items()}}
        watch("plan", trainings=len(ways) * len(chosen), notes=notes)
        rows: list[dict[str, Any]] = []
        for seed in chosen:
            for name, encoder in ways.items():
                unit = run.unit(f"evaluate/{name}/{seed}", lambda e=encoder, s=seed: (bench.judged(e, s), None))  # type: ignore[misc]
                folds = [{"row": name, "seed": seed, "fold": i, **fold} for i, fold in enumerate(unit.value["folds"])]
                rows += folds
                watch("trained", policy=name, seed=seed, accuracy=float(np.mean([f["accuracy"] for f in folds])))
        about = {name: str(policy) for name, policy in found.items()}
        result = Evaluation(protocol, rows, about, len(hidden), notes)
        run.write("evaluation.csv", result.to_csv().encode())
        run.write("evaluation.json", result.to_json().encode())
        run.tell("status", "done")
        return result


def resume_evaluation(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Sequence[Transform | type[Transform]] = (),
    watch: Watch = lambda *_, **__: None,
) -> Evaluation:
    """Go on with an evaluation that was stopped."""
    spec = read_spec(Path(folder))
    reader = Reader(Path(folder) / "spec.json", transforms)
    return evaluate(
        data_again(spec["data"], Path(folder), data),
        task or task_again(spec["task"], reader),  # type: ignore[arg-type]
        {name: reader.policy(spec["policies"][name]) for name in spec["order"]},
        protocol=spec["protocol"],
        seeds=spec["seeds"],
        seen=np.array(spec["seen"], np.int64),
        out=folder,
        watch=watch,
    )


@dataclass(frozen=True)
class Evaluation:
    """The outcome: an accuracy for each row of the table, seed and fold."""

    protocol: str
    rows: Sequence[Mapping[str, Any]]
    policies: Mapping[str, str]
    """What each row's policy is, in words."""
    seen: int
    """Samples that were left out, since a search had seen their labels."""
    notes: Sequence[str] = ()

    def lines(self) -> list[dict[str, Any]]:
        """Mean and spread of each row: over seeds (of the means over folds), and over the folds of a seed."""
        out = []
        for name in dict.fromkeys(row["row"] for row in self.rows):
            mine = [row for row in self.rows if row["row"] == name]
            each = [
                [r["accuracy"] for r in mine if r["seed"] == seed] for seed in dict.fromkeys(r["seed"] for r in mine)
            ]
            means = [float(np.mean(folds)) for folds in each]
            within = [float(np.std(folds, ddof=1)) for folds in each if len(folds) > 1]
            figures = {"seeds": len(means), "mean": float(np.mean(means)), "over_seeds": spread(means)}
            out.append({"row": name, **figures, "over_folds": float(np.mean(within)) if within else None})
        return out

    def to_text(self) -> str:
        """The table, as Markdown, and what the policies are."""
        lines = self.lines()
        columns = {
            "row": [line["row"] for line in lines],
            f"accuracy, {self.protocol}": [figure(line["mean"], line["over_seeds"]) for line in lines],
            "seeds": [str(line["seeds"]) for line in lines],
        }
        if any(line["over_folds"] is not None for line in lines):
            columns["spread over folds"] = [figure(line["over_folds"]) for line in lines]
        wide = [max(map(len, [head, *cells])) for head, cells in columns.items()]
        rows = [list(columns), ["-" * width for width in wide], *zip(*columns.values(), strict=True)]
        table = [f"| {' | '.join(map(str.ljust, row, wide))} |" for row in rows]
        return "\n".join([*table, "", *[f"{name}: {policy}" for name, policy in self.policies.items()]])

    def to_csv(self) -> str:
        """A row for each row of the table, seed and fold."""
        text = io.StringIO()
        writer = csv.DictWriter(
            text, ["row", "seed", "fold", "accuracy", "c", "fitted", "tested"], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def to_json(self) -> str:
        """Everything."""
        content = {
            "protocol": self.protocol,
            "seen": self.seen,
            "policies": dict(self.policies),
            "lines": self.lines(),
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation, where there are two."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


Encoder = Callable[[int], tuple[ContrastiveTrainer, State]]
"""From a seed to an encoder."""


@dataclass
class Table:
    """What the rows of a table are made by."""

    trainer: ContrastiveTrainer
    protocol: Protocol
    seen: Rows
    workers: int

    def untrained(self) -> dict[str, Encoder]:
        """Encoders that nobody has trained here."""
        task = self.trainer.task
        self.others: list[ContrastiveTrainer] = []
        if task.options.get("weights") is None:
            return {RANDOM: lambda seed: (self.trainer, self.trainer.fresh(seed))}
        without = {name: value for name, value in task.options.items() if name != "weights"}
        other = replace(task, options=without).prepare(self.trainer.data)
        self.others.append(other)
        return {
            RANDOM: lambda seed: (other, other.fresh(seed)),
            PRETRAINED: lambda seed: (self.trainer, self.trainer.fresh(seed)),
        }

    def trained(self, policy: Policy) -> Encoder:
        """An encoder at the end of its training with a policy."""
        return lambda seed: (self.trainer, self.trainer.fit(policy, seed))

    def judged(self, encoder: Encoder, seed: int) -> dict[str, Any]:
        """The accuracy on each fold."""
        trainer, state = encoder(seed)
        data = trainer.data
        features: NDArray[np.float64] = trainer.features(state, np.arange(len(data))).double().cpu().numpy()
        labels = data.labels.numpy()
        out = []
        for train, test in folds_of(self.protocol, data, self.seen, seed):
            found = judge_fold(
                self.protocol, (features[train], labels[train]), (features[test], labels[test]), self.workers
            )
            out.append({"accuracy": found.accuracy, "c": found.c, "fitted": len(train), "tested": len(test)})
        return {"folds": out}

    @property
    def passes(self) -> tuple[int, int]:
        """What went through the models."""
        all_ = [self.trainer, *getattr(self, "others", [])]
        return sum(t.passes.forward for t in all_), sum(t.passes.backward for t in all_)


def as_mapping(policies: Any, data: Dataset, task: Contrastive) -> Mapping[str, Asked]:
    """Policies by name; the free ones where there are none."""
    if policies is None:
        return free_policies(data, task)
    if isinstance(policies, Policy | str | Path):
        return {str(policies) if isinstance(policies, str | Path) else "policy": policies}
    if not isinstance(policies, Mapping) or not policies:
        raise ArgumentError("policies", "must be a policy, or map at least one name to a policy", policies)
    return policies


def checked(name: Any, given: Asked, data: Dataset) -> Policy:
    """A policy as a value, which works on such data."""
    if not isinstance(name, str) or not name.isprintable() or not name or name in (RANDOM, PRETRAINED):
        raise ArgumentError("policies", "must have names that are printable text, and none of ours", name)
    policy = policy_of(given, f"policies/{name}", data.fill)
    check_domain(f"policies/{name}", policy, data)
    return policy


def seen_rows(seen: ArrayLike, data: Dataset) -> Rows:
    """Rows that are given."""
    rows = np.asarray(seen)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ArgumentError("seen", "must be a list of rows", seen)
    if rows.size and (rows.min() < 0 or rows.max() >= len(data)):
        raise ArgumentError("seen", f"must be rows from 0 to {len(data) - 1}", [int(rows.min()), int(rows.max())])
    return np.unique(rows.astype(np.int64))


def seen_by_searches(given: Mapping[str, Asked], found: Mapping[str, Policy], data: Dataset) -> Rows:
    """The samples whose labels played a part in finding these policies."""
    parts = [np.zeros(0, np.int64)]
    for name, asked in given.items():
        folder = run_of(asked)
        if folder is not None:
            parts.append(seen_in_run(folder, data))
        elif not is_free(found[name]):
            parts += [data.indices("train"), data.indices("val")]
    return np.unique(np.concatenate(parts))


def run_of(asked: Asked) -> Path | None:
    """The folder of the run that a policy is from."""
    if not isinstance(asked, str | Path):
        return None
    places = (Path(asked), Path(asked).parent)
    return next((place for place in places if (place / "spec.json").is_file()), None)


def seen_in_run(folder: Path, data: Dataset) -> Rows:
    """The samples whose labels a run has read: those that it trained and chose by; none where it was label-free."""
    spec = read_spec(folder)
    if spec["task"].get("judge") in LABEL_FREE:
        return np.zeros(0, np.int64)
    if spec["data"]["fingerprint"] == data.fingerprint:
        searched = data
    elif spec["data"]["source"] is None:
        raise RunError(f"{folder} was made on other data, in arrays: say which labels it has seen, seen=rows")
    else:
        searched = data_again(spec["data"], folder)
    if len(searched) != len(data):
        raise DataError(
            f"{folder} was made on {len(searched)} samples and this is data of {len(data)}: say which rows of it have"
            " labels that were seen, seen=rows"
        )
    return np.concatenate([searched.indices("train"), searched.indices("val")])


def told(protocol: Protocol, task: Contrastive, data: Dataset, seen: Rows) -> str:
    """What the numbers are, in a sentence or two."""
    other = protocol.departures(task)
    apart = f" Not as the protocol has it: {', '.join(other)}." if other else ""
    left = (
        f"; {len(seen)} of {len(data)} samples, whose labels a search has seen, are in no fold" if len(seen) else ""
    )
    return f"Protocol {protocol.name}: {protocol.about}{left if protocol.folds else ''}.{apart}"
