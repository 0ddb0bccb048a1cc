"""Label leakage: the samples whose labels a search has used must not judge what it found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from augtree.baselines.base import Baseline
from augtree.baselines.catalogue import is_known
from augtree.baselines.methods import Method, PolicyLike, is_free
from augtree.data import Dataset, load
from augtree.data.fingerprint import feed
from augtree.errors import ArgumentError, DataError, RunError
from augtree.evaluation.protocols import Protocol, judged_rows
from augtree.runs.spec import restore_data
from augtree.runs.store import read_spec
from augtree.tasks import Contrastive
from augtree.tasks.contrastive import LABEL_FREE
from augtree.training.sampling import Rows

AUTO, NONE, BOTH_SPLITS = "auto", "none", "train+val"


@dataclass(frozen=True)
class KnownLabels:
    """The samples whose labels a search has used, and notes on them for the reader of a table."""

    rows: Rows
    notes: Sequence[str] = ()


def find_known_labels(
    known_labels: str | Path | ArrayLike,
    policies: Mapping[str, PolicyLike],
    methods: Mapping[str, Method],
    data: Dataset,
    protocol: Protocol,
) -> KnownLabels:
    """The samples that the argument `known_labels` of `evaluate` stands for."""
    if not isinstance(known_labels, str | Path):
        return KnownLabels(check_rows(known_labels, data))
    check_known_labels(known_labels)
    if known_labels == AUTO:
        return KnownLabels(known_to_policies(policies, methods, data), notes_of_labelled_runs(policies.values()))
    if known_labels == NONE:
        notes = note_of_optimistic_rows(policies.values(), protocol, data, label_readers(methods))
        return KnownLabels(np.zeros(0, np.int64), notes)
    if known_labels == BOTH_SPLITS:
        own = [data.indices("train"), data.indices("val")]
    else:
        own = [known_to_run(Path(known_labels), data)]
    return KnownLabels(np.unique(np.concatenate([*own, known_to_runs(policies.values(), data)])))


def check_known_labels(known_labels: str | Path) -> None:
    """Raise for a text that stands for no samples."""
    if known_labels not in (AUTO, NONE, BOTH_SPLITS) and not (Path(known_labels) / "spec.json").is_file():
        rule = f"must be {AUTO}, {NONE}, {BOTH_SPLITS} or the folder of a search"
        raise ArgumentError("known_labels", rule, str(known_labels))


def with_all_labels(data: Dataset) -> Dataset:
    """The data of a run that had some of the labels only (`labels=`), with all labels, to judge by the others.

    Groups are not merged, since with all labels others would be too small; `Weighted` merges them as its forest has.

    Examples
    --------
    >>> import augtree as at
    >>> few = at.data.load("digits", train=60, val=60, labels=40)
    >>> len(few.indices("train")), len(with_all_labels(few).indices("train"))
    (40, 60)

    """
    source = data.source or {}
    if source.get("labels") is None:
        return data
    return load(**{name: value for name, value in source.items() if name not in ("labels", "merge")})


def check_rows(known_labels: ArrayLike, data: Dataset) -> Rows:
    """A list of rows, or an ArgumentError."""
    rows = np.asarray(known_labels)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ArgumentError("known_labels", "must be a list of rows", known_labels)
    if rows.size and (rows.min() < 0 or rows.max() >= len(data)):
        raise ArgumentError(
            "known_labels", f"must be rows from 0 to {len(data) - 1}", [int(rows.min()), int(rows.max())]
        )
    return np.unique(rows.astype(np.int64))


def known_to_policies(policies: Mapping[str, PolicyLike], methods: Mapping[str, Method], data: Dataset) -> Rows:
    """The samples whose labels may have been used to find these policies."""
    parts = [known_to_runs(policies.values(), data)]
    for name, policy in policies.items():
        if run_of(policy) is None and reads_labels(methods[name]):
            parts += [data.indices("train"), data.indices("val")]
    return np.unique(np.concatenate(parts))


def reads_labels(method: Method) -> bool:
    """Whether the labels of training and validation samples may have been used: not by a free policy."""
    return method.uses_labels if isinstance(method, Baseline) else not is_free(method)


def known_to_runs(policies: Iterable[PolicyLike], data: Dataset) -> Rows:
    """The samples whose labels the runs among the policies have used."""
    folders = {folder for policy in policies if (folder := run_of(policy)) is not None}
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(known_to_run(folder, data) for folder in folders)]))


def note_of_optimistic_rows(
    policies: Iterable[PolicyLike], protocol: Protocol, data: Dataset, readers: Sequence[str] = ()
) -> list[str]:
    """A note that names the runs which have used labels of judged samples, where none is left out.

    `readers` are the rows whose encoders are trained with the labels of the training samples.
    """
    judged = judged_rows(protocol, data)
    names = list(readers) if np.isin(judged, data.indices("train")).any() else []
    for folder in dict.fromkeys(run_of(policy) for policy in policies):
        try:
            if folder is not None and np.isin(known_to_run(folder, data), judged).any():
                names.append(str(folder))
        except (DataError, RunError):  # made on other data, which may have the same samples
            names.append(str(folder))
    rule = "were made with labels that this judges by: their rows are optimistic"
    return [f"{', '.join(names)} {rule}."] if names else []


def label_readers(methods: Mapping[str, Method]) -> list[str]:
    """The rows whose encoders are trained by a method that reads the labels of training samples."""
    return [name for name, method in methods.items() if isinstance(method, Baseline) and method.uses_labels]


def note_of_label_readers(methods: Mapping[str, Method]) -> list[str]:
    """A note that names the rows whose encoders are trained with labels, beside others that are not."""
    names = ", ".join(label_readers(methods))
    return [f"{names}: trained with the labels of the training samples, unlike other rows."] if names else []


def is_name(policy: PolicyLike) -> bool:
    """Whether a policy is the name of a preset or a method."""
    return isinstance(policy, str | Path) and is_known(str(policy))


def run_of(policy: PolicyLike) -> Path | None:
    """The folder of the run that a policy is from; a training is none, since it does not tell how that was found."""
    if not isinstance(policy, str | Path) or is_name(policy):
        return None
    folders = (Path(policy), Path(policy).parent)
    folder = next((folder for folder in folders if (folder / "spec.json").is_file()), None)
    return None if folder is None or read_spec(folder)["kind"] == "train" else folder


def known_to_run(folder: Path, data: Dataset) -> Rows:
    """The samples whose labels a run has used: its training and validation samples; none where it was label-free.

    A fit does not tell how its trees were found, so it is never label-free. Weights that were trained with labels do
    not tell with which: where a run began with such weights, all but the test samples count, the unlabelled ones too.
    """
    spec = read_spec(folder)
    began = labelled_training(spec["task"].get("options", {})) is not None
    if spec["kind"] in ("search", "forest") and spec["task"].get("judge") in LABEL_FREE and not began:
        return np.zeros(0, np.int64)
    if spec["data"]["fingerprint"] == data.fingerprint:
        searched = data
    elif spec["data"]["source"] is None:
        raise RunError(f"{folder} was made on other data, in arrays: say which labels it has used, known_labels=rows")
    else:
        searched = restore_data(spec["data"], folder)
    if searched is not data and (len(searched) != len(data) or content_of(searched) != content_of(data)):
        raise DataError(
            f"{folder} was made on {len(searched)} samples and these {len(data)} are not the same in the same order:"
            " say which rows of them have labels that it used, known_labels=rows"
        )
    splits = ("train", "val", "unlabelled") if began else ("train", "val")
    return np.concatenate([searched.indices(split) for split in splits])


def notes_of_labelled_runs(policies: Iterable[PolicyLike]) -> list[str]:
    """A note for each run among the policies that began with weights which were trained with labels."""
    out = []
    for folder in dict.fromkeys(run_of(policy) for policy in policies):
        options = {} if folder is None else read_spec(folder)["task"].get("options", {})
        kind = labelled_training(options)
        if kind is not None:
            rule = "all but its test samples count as seen"
            out.append(f"{folder} began with {options['weights']}, which was trained with labels ({kind}): {rule}.")
    return out


def content_of(data: Dataset) -> str:
    """A hash of samples and labels alone, whatever their split and their groups."""
    state = hashlib.sha256()
    feed(state, data.samples, "samples")
    feed(state, data.labels, "labels")
    return state.hexdigest()


def note_of_labelled_weights(task: Contrastive) -> list[str]:
    """A note where the weights that a task begins with were trained with labels."""
    kind = labelled_training(task.options)
    rule = "the rows that begin with them may have seen the labels that this judges by"
    return [] if kind is None else [f"{task.options['weights']} was trained with labels ({kind}): {rule}."]


def labelled_training(options: Mapping[str, Any]) -> str | None:
    """The kind of task, where it has labels, that a model's weights were trained for; from the file beside them.

    A contrastive training may itself have begun with such weights, and so on.
    """
    known: set[Path] = set()
    while (weights := options.get("weights")) is not None:
        beside = Path(weights).parent / "training.json"
        if beside in known or not beside.is_file():
            return None
        known.add(beside)
        try:
            task = json.loads(beside.read_bytes())["task"]
            kind, options = str(task["task"]), dict(task.get("options", {}))
        except (ValueError, KeyError, TypeError, AttributeError):  # not a file of ours
            return None
        if kind != Contrastive.kind:
            return kind
    return None
