"""`evaluate`: encoders trained without labels on each policy, judged by a protocol that many papers use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from augtree.baselines.ways import (
    Asked,
    Way,
    check_domain,
    fitted,
    free_policies,
    or_failed,
    policy_of,
    seeds_of,
    way_again,
    way_of,
)
from augtree.data import Dataset
from augtree.errors import ArgumentError, TaskError, whole_number
from augtree.evaluation.leakage import begun_with_labels, is_name, labelled_weights, seen_by_searches, seen_rows
from augtree.evaluation.protocols import USUAL, Protocol, find_protocol, folds_of, judge_fold, judged_rows
from augtree.evaluation.result import Evaluation, failures
from augtree.forests import Weighted
from augtree.policies import Forest
from augtree.policies.codec import Reader, to_json
from augtree.runs.store import VERSION, Run, read_spec
from augtree.search.search import Watch, data_again, surroundings, task_again
from augtree.tasks import Contrastive, Task
from augtree.tasks.contrastive import ContrastiveTrainer
from augtree.training.trainer import Rows, State
from augtree.transforms import Transform
from augtree.transforms.base import Policy

RANDOM, PRETRAINED = "random encoder", "pretrained features"
"""Rows without any training of ours: fresh weights, and those of the file that the task begins with."""


def evaluate(
    data: Dataset,
    task: Contrastive | None = None,
    policies: Mapping[str, Asked] | Policy | Weighted | str | None = None,
    *,
    protocol: str | None = None,
    seeds: int | Sequence[int] = 5,
    seen: ArrayLike | None = None,
    notes: Sequence[str] = (),
    workers: int = 1,
    out: str | Path | None = None,
    watch: Watch = lambda *_, **__: None,
) -> Evaluation:
    """Train an encoder with each policy and seed, without labels, and judge its features by a protocol.

    `protocol` is graphcl or tree-paper (stratified ten-fold over all samples; the encoder is trained on all of them,
    without labels), or linear or svm (the data's own training and test samples); left out, graphcl for graphs and
    linear for pictures. Without a task, the protocol's own. Beside the policies (without any, the free ones) stand a
    random encoder and, where the task begins with weights from a file, these. The run of a forest, or a `Weighted`
    one, learns its weights in every training. A training that fails is marked so, with the reason, and the others go
    on. `notes` are told with the result.

    `seen` are the samples whose labels a search has seen: they are in no fold, for no row of the table. Where it is
    not given: what the searches saw whose folders are among the policies (nothing, if they were label-free), and for
    policies that are neither free nor such a folder the training and validation samples of `data`.
    """
    how = find_protocol(USUAL[data.domain] if protocol is None else protocol)
    task = how.task() if task is None else task
    if not isinstance(task, Contrastive):
        raise ArgumentError(
            "task", "must be a contrastive one: its encoder is what is evaluated", type(task).__name__
        )
    how.check(task, data)
    if how.folds is not None:
        task = replace(task, samples="all")
    given = as_mapping(policies, data, task)
    found = {name: checked(name, policy, data) for name, policy in given.items()}
    hidden = seen_rows(seen, data) if seen is not None else seen_by_searches(given, found, data)
    notes = [*notes, *(begun_with_labels(given.values()) if seen is None else [])]
    chosen, workers = seeds_of(seeds), whole_number("workers", workers, 1, 1024)
    for seed in chosen:
        list(folds_of(how, data, hidden, seed))  # what cannot be split is said before anything is trained
    spec = {
        "version": VERSION,
        "kind": "evaluate",
        "data": {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint},
        "task": task.spec(),
        "protocol": how.name,
        "policies": {name: p.spec() if isinstance(p, Weighted) else to_json(p) for name, p in found.items()},
        "order": list(found),
        "seeds": chosen,
        "seen": hidden.tolist(),
    }
    trainer = task.prepare(data)
    spec |= {"begins": trainer.identity(chosen[0]), **({"notes": list(notes)} if notes else {})}
    with Run.begin(out, spec) as run:
        bench = Table(trainer, how, hidden, workers)
        run.meter.read = lambda: bench.passes
        left = np.intersect1d(judged_rows(how, data), hidden)
        notes = [*surroundings(run, trainer), *notes, *labelled_weights(task), told(how, task, data, len(left))]
        ways = {**bench.untrained(), **{name: bench.trained(way) for name, way in found.items()}}
        watch("plan", trainings=len(ways) * len(chosen), notes=notes)
        rows: list[dict[str, Any]] = []
        for seed in chosen:
            for name, encoder in ways.items():
                unit = run.unit(f"evaluate/{name}/{seed}", bench.work(encoder, seed)).value
                failed = "failed" in unit
                mine = [unit] if failed else [{"fold": i, **fold} for i, fold in enumerate(unit["folds"])]
                rows += [{"row": name, "seed": seed, **each} for each in mine]
                whole = unit if failed else {"accuracy": float(np.mean([fold["accuracy"] for fold in mine]))}
                watch("trained", policy=name, seed=seed, **whole)
        about = {name: in_words(way) for name, way in found.items()}
        result = Evaluation(how.name, rows, about, len(left), [*notes, *failures(rows)])
        run.write("evaluation.csv", result.to_csv().encode())
        run.write("evaluation.json", result.to_json().encode())
        run.tell("status", "done")
        if all("failed" in row for row in rows):
            raise TaskError(f"every row of the table failed, the first with: {rows[0]['failed']}")
        return result


def resume_evaluation(
    folder: str | Path,
    *,
    data: Dataset | None = None,
    task: Task | None = None,
    transforms: Sequence[Transform | type[Transform]] = (),
    workers: int = 1,
    watch: Watch = lambda *_, **__: None,
) -> Evaluation:
    """Go on with an evaluation that was stopped."""
    spec = read_spec(Path(folder))
    reader = Reader(Path(folder) / "spec.json", transforms)
    return evaluate(
        data_again(spec["data"], Path(folder), data),
        task or task_again(spec["task"], reader),  # type: ignore[arg-type]
        {name: way_again(spec["policies"][name], reader) for name in spec["order"]},
        protocol=spec["protocol"],
        seeds=spec["seeds"],
        seen=np.array(spec["seen"], np.int64),
        notes=spec.get("notes", ()),
        workers=workers,
        out=folder,
        watch=watch,
    )


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

    def trained(self, way: Way) -> Encoder:
        """An encoder at the end of its training with a policy, or with a forest whose weights are learned."""
        return lambda seed: (self.trainer, fitted(self.trainer, way, seed, "train")[0])

    def work(self, encoder: Encoder, seed: int) -> Callable[[], tuple[dict[str, Any], None]]:
        """One row of the table with one seed, as a unit of a run."""
        return lambda: (or_failed(lambda: self.judged(encoder, seed)), None)

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
    if isinstance(policies, Policy | Weighted | str | Path):
        return {str(policies) if isinstance(policies, str | Path) else "policy": policies}
    if not isinstance(policies, Mapping) or not policies:
        raise ArgumentError("policies", "must be a policy, or map at least one name to a policy", policies)
    return policies


def checked(name: Any, given: Asked, data: Dataset) -> Policy | Weighted:
    """A way to train an encoder, which works on such data."""
    if not isinstance(name, str) or not name.isprintable() or not name or name in (RANDOM, PRETRAINED):
        raise ArgumentError("policies", "must have names that are printable text, and none of ours", name)
    place = f"policies/{name}"
    way = policy_of(given, place, data) if is_name(given) else way_of(given, place, data)
    if not isinstance(way, Policy | Weighted):
        rule = "must be a policy, a name, a file or a forest whose weights are learned: controls are for compare"
        raise ArgumentError(place, rule, way)
    check_fits(place, way, data)
    return way


def check_fits(place: str, way: Policy | Weighted, data: Dataset) -> None:
    """Raise for what does not work on such samples, and for a forest that is of other groups than theirs."""
    policy = way.forest if isinstance(way, Weighted) else way
    if not isinstance(policy, Forest):
        return check_domain(place, policy, data)
    for member in policy.groups.values():
        check_domain(place, member.tree, data)
    try:
        check_domain(place, policy, way.on(data) if isinstance(way, Weighted) else data)
    except ArgumentError as error:
        rule = f"must be of the groups of the data, which groups=... (--groups) makes: {error}"
        raise ArgumentError(place, rule) from error


def in_words(way: Way) -> str:
    """What a row is trained with."""
    return f"{way.forest}, with learned weights" if isinstance(way, Weighted) else str(way)


def told(protocol: Protocol, task: Contrastive, data: Dataset, left: int) -> str:
    """What the numbers are, and on how many samples, in a sentence or two."""
    other = protocol.departures(task)
    apart = f" Not as the protocol has it: {', '.join(other)}." if other else ""
    return f"Protocol {protocol.name}: {protocol.about}{left_out(protocol, data, left)}.{apart}"


def left_out(protocol: Protocol, data: Dataset, left: int) -> str:
    """How many samples are not judged, and why."""
    judged = len(judged_rows(protocol, data))
    if protocol.folds is None:
        return f"; {left} of {judged} test samples, whose labels a search has seen, are left out" if left else ""
    whys = {"whose labels a search has seen": left, "unlabelled": len(data) - judged}
    rest = " and ".join(f"{count} {why}" for why, count in whys.items() if count)
    return f"; {judged - left} of {len(data)} samples are in folds, {rest} are in none" if rest else ""
