"""`evaluate`: encoders trained without labels with each policy, judged by a protocol that papers use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from augtree.baselines.base import Baseline
from augtree.baselines.methods import (
    PolicyLike,
    check_domain,
    check_fits,
    check_names,
    fit,
    free_policies,
    method_of,
    seeds_of,
)
from augtree.data import Dataset
from augtree.errors import ArgumentError, TaskError, whole_number
from augtree.evaluation.leakage import (
    KnownLabels,
    find_known_labels,
    is_name,
    note_of_label_readers,
    note_of_labelled_weights,
)
from augtree.evaluation.protocols import USUAL, Protocol, find_protocol, folds_of, judge_fold, judged_rows
from augtree.evaluation.result import Evaluation, failures
from augtree.forests import Weighted
from augtree.policies import Forest
from augtree.policies.codec import to_json
from augtree.progress import shown
from augtree.runs.events import Finished, Planned, RowTrained, Watch, Watchers
from augtree.runs.failures import attempt
from augtree.runs.spec import begin_run, run_spec
from augtree.runs.store import Run
from augtree.tables import counted
from augtree.tasks import Contrastive, Task
from augtree.tasks.arguments import DataLike, dataset_of, task_of
from augtree.tasks.contrastive import ContrastiveTrainer
from augtree.training.state import State
from augtree.transforms.base import Policy

RANDOM, PRETRAINED = "random encoder", "pretrained features"
"""The rows without a training: fresh weights, and the file's that the task begins with."""
EncoderMethod = Policy | Weighted | Baseline
"""What can train an encoder."""
Encoder = Callable[[int], tuple[ContrastiveTrainer, State]]
"""From a seed to an encoder."""


def evaluate(
    data: DataLike,
    task: Contrastive | str | None = None,
    policies: Mapping[str, PolicyLike] | Policy | Weighted | str | None = None,
    *,
    protocol: str | None = None,
    seeds: int | Sequence[int] = 5,
    known_labels: str | Path | ArrayLike = "auto",
    workers: int = 1,
    out: str | Path | None = None,
    watch: Watchers = None,
) -> Evaluation:
    """Train an encoder with each policy and seed, without labels, and judge its features by a protocol.

    The table also has a random encoder and, where the task begins with weights from a file, the encoder of these. A
    training that fails is marked so, with the reason, and the others go on.

    Parameters
    ----------
    data
        The data set, or its name or path; one label a sample.
    task
        A contrastive task; by default the protocol's own.
    policies
        By name, or a single one; by default the free policies. The weights of a forest's run, or of a `Weighted`
        forest, are learned in every training.
    protocol
        graphcl or tree-paper: stratified ten-fold over all samples; the encoder is trained on all of them, without
        labels. linear or svm: the data's own training and test samples. By default graphcl for graphs, linear for
        pictures.
    seeds
        Trainings with each policy, or their seeds.
    known_labels
        The samples whose labels a search has used: they are in no fold, for any row of the table.

        - "auto": those that the runs among the policies have used (none, where they were label-free). A policy that
          is neither free nor from a run counts as one that has used the training and validation samples.
        - "train+val", or the folder of a search: its samples, and those that the runs among the policies have used.
        - "none": no samples; a note names the runs whose rows are optimistic because of that.
        - A list of rows: these samples alone.
    workers
        Classifiers that are fitted side by side; the result is the same.
    out
        The folder of the run; without one, nothing is saved.
    watch
        Called with every event (`augtree.runs.events`): a function, a logger (`augtree.loggers`), or a list of them.
        With None, or loggers alone, the progress is shown in a terminal or a notebook.

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Contrastive(model="cnn", options={"width": 2}, steps=2, batch_size=16)
    >>> table = at.evaluate(data, task, {"none": None}, protocol="linear", seeds=1)
    >>> [line["row"] for line in table.lines()]
    ['random encoder', 'none']

    """
    data = dataset_of(data)
    chosen = find_protocol(USUAL[data.domain] if protocol is None else protocol)
    task = task_for(chosen, None if task is None else task_of(task), data).for_data(data)
    named = as_mapping(policies, data, task)
    methods = {name: check_policy(name, policy, data, task) for name, policy in named.items()}
    known = find_known_labels(known_labels, named, methods, data, chosen)
    return evaluate_methods(data, task, methods, chosen, seeds_of(seeds), known, workers, out, watch)


def evaluate_methods(
    data: Dataset,
    task: Contrastive,
    methods: Mapping[str, EncoderMethod],
    protocol: Protocol,
    seeds: Sequence[int],
    known: KnownLabels,
    workers: int,
    out: str | Path | None,
    watch: Watchers,
) -> Evaluation:
    """The run: every encoder, every fold, the table."""
    workers = whole_number("workers", workers, 1, 1024)
    for seed in seeds:
        list(
            folds_of(protocol, data, known.rows, seed)
        )  # raises where the data cannot be split, before anything is trained
    texts = {name: to_json(m) if isinstance(m, Policy) else m.spec() for name, m in methods.items()}
    about: dict[str, Any] = {"protocol": protocol.name, "policies": texts, "order": list(methods)}
    about |= {"seeds": list(seeds), "seen": known.rows.tolist()} | (
        {"notes": list(known.notes)} if known.notes else {}
    )
    trainer = task.prepare(data)
    with shown(watch) as show, begin_run(out, run_spec("evaluate", data, task, **about), trainer, seeds[0]) as run:
        table = EncoderTable(trainer, protocol, known, workers)
        run.meter = lambda: table.passes
        excluded = len(np.intersect1d(judged_rows(protocol, data), known.rows))
        notes = [*run.notes, *known.notes, *note_of_labelled_weights(task), *note_of_label_readers(methods)]
        notes.append(describe(protocol, task, data, excluded))
        encoders = {**table.untrained(), **{name: table.trained(method) for name, method in methods.items()}}
        trainings = len(encoders) * len(seeds)
        show(Planned(notes=list(notes), lines=[f"{counted(trainings, 'training')}."], trainings=trainings))
        rows = list(table.rows(run, encoders, seeds, show))
        words = {name: method_in_words(method) for name, method in methods.items()}
        result = Evaluation(protocol.name, rows, words, excluded, [*notes, *failures(rows)])
        run.write_all({"evaluation.csv": result.to_csv().encode(), "evaluation.json": result.to_json().encode()})
        run.record_fact("status", "done")
        if all("failed" in row for row in rows):
            raise TaskError(f"every row of the table failed, the first with: {rows[0]['failed']}")
        show(Finished(result.to_text()))
        return result


@dataclass
class EncoderTable:
    """Trains and judges the encoders of a table."""

    trainer: ContrastiveTrainer
    protocol: Protocol
    known: KnownLabels
    workers: int
    others: list[ContrastiveTrainer] = field(default_factory=list)
    """Beside `trainer`, those whose passes count."""

    def untrained(self) -> dict[str, Encoder]:
        """The encoders without a training: random and, where the task begins with a file, pretrained."""
        task = self.trainer.task
        if task.options.get("weights") is None:
            return {RANDOM: lambda seed: (self.trainer, self.trainer.fresh(seed))}
        without = {name: value for name, value in task.options.items() if name != "weights"}
        other = replace(task, options=without).prepare(self.trainer.data)
        self.others.append(other)
        return {
            RANDOM: lambda seed: (other, other.fresh(seed)),
            PRETRAINED: lambda seed: (self.trainer, self.trainer.fresh(seed)),
        }

    def trained(self, method: EncoderMethod) -> Encoder:
        """An encoder at the end of its training."""
        return lambda seed: (self.trainer, fit(self.trainer, method, seed, "train")[0])

    def rows(
        self, run: Run, encoders: Mapping[str, Encoder], seeds: Sequence[int], watch: Watch
    ) -> Iterator[dict[str, Any]]:
        """A row for each seed, encoder and fold; one alone where an encoder failed."""
        for seed in seeds:
            for name, encoder in encoders.items():
                value = run.unit(f"evaluate/{name}/{seed}", self.unit_for(encoder, seed)).value
                folds = value.get("folds", ())
                mean = {"accuracy": float(np.mean([fold["accuracy"] for fold in folds]))} if folds else {}
                watch(RowTrained(name, seed, mean, value.get("failed", "")))
                for each in [{"fold": i, **fold} for i, fold in enumerate(folds)] or [value]:
                    yield {"row": name, "seed": seed, **each}

    def unit_for(self, encoder: Encoder, seed: int) -> Callable[[], tuple[dict[str, Any], None]]:
        """One row of the table with one seed, as a unit of a run."""

        def judge() -> tuple[dict[str, Any], None]:
            folds, failed = attempt(lambda: self.judged(encoder, seed))
            return ({"failed": failed} if folds is None else {"folds": folds}), None

        return judge

    def judged(self, encoder: Encoder, seed: int) -> list[dict[str, Any]]:
        """The accuracy on each fold."""
        trainer, state = encoder(seed)
        data = trainer.data
        features: NDArray[np.float64] = trainer.features(state, np.arange(len(data))).double().cpu().numpy()
        labels = data.labels.numpy()
        out = []
        for train, test in folds_of(self.protocol, data, self.known.rows, seed):
            result = judge_fold(
                self.protocol, (features[train], labels[train]), (features[test], labels[test]), self.workers
            )
            out.append({"accuracy": result.accuracy, "c": result.c, "fitted": len(train), "tested": len(test)})
        return out

    @property
    def passes(self) -> tuple[int, int]:
        """The samples that went forward and backward through the models."""
        trainers = [self.trainer, *self.others]
        return sum(t.passes.forward for t in trainers), sum(t.passes.backward for t in trainers)


def task_for(protocol: Protocol, task: Task | None, data: Dataset) -> Contrastive:
    """The task as the protocol trains it; without one, the protocol's own."""
    task = protocol.task() if task is None else task
    if not isinstance(task, Contrastive):
        raise ArgumentError(
            "task", "must be a contrastive one: its encoder is what is evaluated", type(task).__name__
        )
    protocol.check(task, data)
    return task if protocol.folds is None else replace(task, samples="all")


def as_mapping(policies: Any, data: Dataset, task: Contrastive) -> Mapping[str, PolicyLike]:
    """Policies by name; the free ones where there are none."""
    if policies is None:
        return free_policies(data, task)
    if isinstance(policies, Policy | Weighted | Baseline | str | Path):
        policies = {str(policies) if isinstance(policies, str | Path) else "policy": policies}
    return check_names(policies, "must be a policy, or map at least one name to a policy", (RANDOM, PRETRAINED))


def check_policy(name: str, policy: PolicyLike, data: Dataset, task: Task) -> EncoderMethod:
    """A policy as a method that trains an encoder on such data, or an ArgumentError."""
    place = f"policies/{name}"
    method = method_of(str(policy) if is_name(policy) else policy, place, data, task)
    if isinstance(method, Baseline):
        check_fits(place, method, task, data)
        return method
    if not isinstance(method, Policy | Weighted):
        rule = "must be a policy, a name, a file or a forest whose weights are learned: controls are for compare"
        raise ArgumentError(place, rule, method)
    check_method_groups(place, method, data)
    return method


def check_method_groups(place: str, method: Policy | Weighted, data: Dataset) -> None:
    """Raise for a method that does not work on such samples, or a forest of other groups than theirs."""
    policy = method.forest if isinstance(method, Weighted) else method
    if not isinstance(policy, Forest):
        check_domain(place, policy, data)
        return
    for member in policy.groups.values():
        check_domain(place, member.tree, data)
    try:
        check_domain(place, policy, method.on(data) if isinstance(method, Weighted) else data)
    except ArgumentError as error:
        rule = f"must be of the groups of the data, which groups=... (--groups) makes: {error}"
        raise ArgumentError(place, rule) from error


def method_in_words(method: EncoderMethod) -> str:
    """The policy of a row, in words."""
    return f"{method.forest}, with learned weights" if isinstance(method, Weighted) else str(method)


def describe(protocol: Protocol, task: Contrastive, data: Dataset, excluded: int) -> str:
    """The protocol, the samples that are left out, and where the task departs from the protocol."""
    other = protocol.departures(task)
    departures = f" Not as the protocol has it: {', '.join(other)}." if other else ""
    return f"Protocol {protocol.name}: {protocol.about}{excluded_text(protocol, data, excluded)}.{departures}"


def excluded_text(protocol: Protocol, data: Dataset, excluded: int) -> str:
    """How many samples are not judged, and why."""
    judged = len(judged_rows(protocol, data))
    if protocol.folds is None:
        return (
            f"; {excluded} of {judged} test samples, whose labels a search has seen, are left out" if excluded else ""
        )
    whys = {"whose labels a search has seen": excluded, "unlabelled": len(data) - judged}
    rest = " and ".join(f"{count} {why}" for why, count in whys.items() if count)
    return f"; {judged - excluded} of {len(data)} samples are in folds, {rest} are in none" if rest else ""
