"""Which labels have played a part in finding a policy: they must not judge it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from augtree.baselines.ways import (
    Asked,
    Way,
    is_free,
)
from augtree.data import Dataset
from augtree.data.dataset import feed
from augtree.errors import ArgumentError, DataError, RunError
from augtree.evaluation.protocols import Protocol, judged_rows
from augtree.policies.presets import NAMED
from augtree.runs.store import read_spec
from augtree.search.search import data_again
from augtree.tasks import Contrastive
from augtree.tasks.contrastive import LABEL_FREE
from augtree.training.trainer import Rows


def seen_rows(seen: ArrayLike, data: Dataset) -> Rows:
    """Rows that are given."""
    rows = np.asarray(seen)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ArgumentError("seen", "must be a list of rows", seen)
    if rows.size and (rows.min() < 0 or rows.max() >= len(data)):
        raise ArgumentError("seen", f"must be rows from 0 to {len(data) - 1}", [int(rows.min()), int(rows.max())])
    return np.unique(rows.astype(np.int64))


def seen_by_searches(given: Mapping[str, Asked], found: Mapping[str, Way], data: Dataset) -> Rows:
    """The samples whose labels played a part in finding these policies."""
    parts = [seen_in_runs(given.values(), data)]
    for name, asked in given.items():
        if run_of(asked) is None and not is_free(found[name]):
            parts += [data.indices("train"), data.indices("val")]
    return np.unique(np.concatenate(parts))


def seen_in_runs(given: Iterable[Asked], data: Dataset) -> Rows:
    """The samples whose labels the runs among the policies have read."""
    folders = {folder for asked in given if (folder := run_of(asked)) is not None}
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(seen_in_run(folder, data) for folder in folders)]))


def judged_on_seen(given: Iterable[Asked], protocol: Protocol, data: Dataset) -> list[str]:
    """A note that names the runs which have read labels that are judged by, where nothing is left out."""
    judged, names = judged_rows(protocol, data), []
    for folder in dict.fromkeys(run_of(asked) for asked in given):
        try:
            if folder is not None and np.isin(seen_in_run(folder, data), judged).any():
                names.append(str(folder))
        except (DataError, RunError):  # made on other data, which may have the same samples
            names.append(str(folder))
    rule = "were made with labels that this judges by: their rows are flattered"
    return [f"{', '.join(names)} {rule}."] if names else []


def is_name(asked: Asked) -> bool:
    """Whether a policy is asked for by its name."""
    return isinstance(asked, str | Path) and str(asked).lower() in NAMED


def run_of(asked: Asked) -> Path | None:
    """The folder of the run that a policy is from."""
    if not isinstance(asked, str | Path) or is_name(asked):
        return None
    places = (Path(asked), Path(asked).parent)
    return next((place for place in places if (place / "spec.json").is_file()), None)


def seen_in_run(folder: Path, data: Dataset) -> Rows:
    """The samples whose labels a run has read: those that it trained and chose by; none where it was label-free.

    A fit says nothing of how its trees were found. Weights that were trained with labels do not say with whose: where
    a run began with such, all but the test samples count as seen, label-free or not, those without a label too.
    """
    spec = read_spec(folder)
    began = labelled_training(spec["task"].get("options", {})) is not None
    if spec["kind"] in ("search", "forest") and spec["task"].get("judge") in LABEL_FREE and not began:
        return np.zeros(0, np.int64)
    if spec["data"]["fingerprint"] == data.fingerprint:
        searched = data
    elif spec["data"]["source"] is None:
        raise RunError(f"{folder} was made on other data, in arrays: say which labels it has seen, seen=rows")
    else:
        searched = data_again(spec["data"], folder)
    if searched is not data and (len(searched) != len(data) or content_of(searched) != content_of(data)):
        raise DataError(
            f"{folder} was made on {len(searched)} samples and these {len(data)} are not the same in the same order:"
            " say which rows of them have labels that were seen, seen=rows"
        )
    splits = ("train", "val", "unlabelled") if began else ("train", "val")
    return np.concatenate([searched.indices(split) for split in splits])


def begun_with_labels(given: Iterable[Asked]) -> list[str]:
    """A note for each run among the policies that began with weights which were trained with labels."""
    out = []
    for folder in dict.fromkeys(run_of(asked) for asked in given):
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


def labelled_weights(task: Contrastive) -> list[str]:
    """A note where the weights that a task begins with were trained with labels."""
    kind = labelled_training(task.options)
    rule = "the rows that begin with them may have seen the labels that this judges by"
    return [] if kind is None else [f"{task.options['weights']} was trained with labels ({kind}): {rule}."]


def labelled_training(options: Mapping[str, Any]) -> str | None:
    """The task that a model's weights were trained for, where that took labels, as the file beside them tells.

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
