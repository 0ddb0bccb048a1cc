"""Mistakes: the validation samples that the finished model gets wrong with most confidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from augtree.data import Dataset
from augtree.errors import need
from augtree.report.gather import Record
from augtree.report.markup import Html, tag
from augtree.report.paths import class_of, sources_of
from augtree.report.pictures import Pictures, are_pixels
from augtree.report.sections import Section
from augtree.runs.failures import attempt
from augtree.training.state import State

INTRO = (
    "The validation samples that the finished model gets wrong while it is most sure of itself. They often show"
    " what the data are missing, or labels that are wrong."
)
MOST = 12
LARGEST = 20_000
"""More validation samples than this are not gone through: the first ones are."""


class Mistake(NamedTuple):
    """A sample, what the model takes it for, and how sure it is."""

    row: int
    taken_for: str
    confidence: float


def section(record: Record, pictures: Pictures) -> Section | None:
    """The mistakes of a run's model; of runs without one, nothing."""
    if not (record.folder / "model.safetensors").is_file():
        return None
    reason = record.no_data or record.no_task
    if record.data is None or record.task is None:
        return Section("mistakes", "Its most confident mistakes", INTRO, absent(reason))
    data = record.data
    found, reason = attempt(lambda: mistakes_of(record))
    if found is None:
        return Section("mistakes", "Its most confident mistakes", INTRO, absent(reason))
    mistakes, count, judged = found
    if not mistakes:
        words = (
            f"There are none: the model is right on all {judged:,} validation samples."
            if judged
            else "There are no validation samples."
        )
        return Section("mistakes", "Its most confident mistakes", INTRO, tag("p", words))
    share = f"{count:,} of {judged:,} validation samples are wrong; these are the surest of them."
    cards = [card(mistake, data, pictures) for mistake in mistakes]
    return Section(
        "mistakes",
        "Its most confident mistakes",
        INTRO,
        tag(
            "div",
            tag("p", share),
            tag("ul", cards, class_="mistakes pixels" if are_pixels(data.samples) else "mistakes"),
        ),
    )


def absent(reason: str) -> Html:
    """That there are no mistakes to see, and why."""
    return tag("p", f"They are not shown: {reason}.", class_="absent")


def card(mistake: Mistake, data: Dataset, pictures: Pictures) -> Html:
    """One sample, what it is and what the model takes it for."""
    samples = data.samples
    one: Any = samples[mistake.row : mistake.row + 1] if isinstance(samples, Tensor) else Alone(samples[mistake.row])
    source = sources_of(one, None)[0]
    is_, group = class_of(data, mistake.row), data.group_names[int(data.groups[mistake.row])]
    words = f"{is_}, taken for {mistake.taken_for}"
    file = data.files[mistake.row] if data.files else None
    image = (
        None
        if pictures.is_full
        else tag("img", data_picture=pictures.add(source), alt=words, title=file and str(file))
    )
    told = tag("p", tag("b", is_), " taken for ", tag("b", mistake.taken_for, class_="wrong"))
    more = f"{100 * mistake.confidence:.0f} % sure" + (f", {group}" if len(data.group_names) > 1 else "")
    return tag("li", image, told, tag("p", more, class_="faint"))


class Alone(NamedTuple):
    """A graph alone, as a batch of one."""

    graph: Any

    def to_data_list(self) -> list[Any]:
        """The graphs."""
        return [self.graph]


def mistakes_of(record: Record) -> tuple[list[Mistake], int, int]:
    """The surest mistakes, how many there are, and of how many samples."""
    data, task = record.data, record.task
    if data is None or task is None:
        return [], 0, 0
    rows = data.indices("val")[:LARGEST]
    if not len(rows):
        return [], 0, 0
    trainer = task.prepare(data)
    logits = trainer.logits(finished_state(trainer, record.folder), rows).double().cpu()
    labels = data.labels[torch.from_numpy(rows)]
    if data.multilabel:
        sure = (logits.sigmoid() - labels.double()).abs()
        confidence, column = sure.max(1)
        wrong = confidence > 0.5
        named = [f"{'' if labels[i, c] == 0 else 'not '}{data.classes[int(c)]}" for i, c in enumerate(column)]
    else:
        confidence, column = logits.softmax(1).max(1)
        wrong = column != labels
        named = [data.classes[int(c)] for c in column]
    places = np.flatnonzero(wrong.numpy())
    order = places[np.argsort(-confidence.numpy()[places], kind="stable")][:MOST]
    return [Mistake(int(rows[i]), named[i], float(confidence[i])) for i in order], len(places), len(rows)


def finished_state(trainer: Any, folder: Path) -> State:
    """The finished model of a run, as its trainer takes it."""
    weights = need("safetensors.torch", "train").load_file(folder / "model.safetensors")
    trainer.fresh(0)
    with torch.no_grad():
        for name, tensor in trainer.model.state_dict().items():
            tensor.copy_(weights[name])
    state: State = trainer.snapshot(0)
    return state
