"""What the scorers share: the context they work in, paired scores, and the confirmation of a winner."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from augtree.data.splits import strata
from augtree.errors import TaskError, number
from augtree.keys import Key
from augtree.policies import Tree
from augtree.runs.checkpoints import Checkpoints, LazyState
from augtree.runs.events import Event, Note, Progress, Watch, figure_name, silent
from augtree.runs.failures import BudgetSpentError, attempt
from augtree.runs.store import Run, Unit
from augtree.search.grow import Built
from augtree.tasks.base import Task
from augtree.tasks.trainer import Trainer
from augtree.training.sampling import Rows
from augtree.training.state import State
from augtree.transforms import Identity
from augtree.transforms.base import Transform
from augtree.transforms.images import Plain

Losses = NDArray[np.float64]
SATURATED = (
    "The model is right on every validation sample already: policies can hardly be told apart on this data; fewer"
    " training samples (train=, --train) or a harder validation set would show more."
)


class Entry(NamedTuple):
    """A candidate at a probability."""

    transform: Transform
    p: float

    def at(self, node: int, tree: Tree) -> Tree:
        """The tree with this entry at a node."""
        return tree.with_node(node, self.transform, self.p)


class Score(NamedTuple):
    """How an entry did: the mean loss and its gain over the baseline, each with a standard error."""

    entry: Entry
    loss: float = float("inf")
    loss_se: float = 0.0
    gain: float = float("-inf")
    gain_se: float = 0.0
    failed: str = ""
    gains: Losses | None = None
    """The gain on each sample, where that was kept."""


@dataclass(frozen=True)
class Scored(Event):
    """A candidate has its score."""

    node: int
    candidate: str
    loss: float | None = None
    """Its loss; None where it failed."""

    def describe(self) -> Sequence[str]:
        return []

    def logged(self) -> Mapping[str, float]:
        return {} if self.loss is None else {figure_name("nodes", str(self.node), self.candidate): self.loss}

    def progress(self) -> Progress:
        return Progress(f"node {self.node}: {self.candidate}", added=1)


@dataclass
class ScoringContext:
    """What a scorer works with: a trainer, candidates, halves of the validation samples, and the run to record in."""

    trainer: Trainer
    space: Sequence[Transform]
    probabilities: tuple[float, ...]
    seed: int
    run: Run
    most_passes: float = float("inf")
    most_seconds: float = float("inf")
    watch: Watch = silent

    def __post_init__(self) -> None:
        self.candidates, data = distinct(self.space), self.trainer.data
        self.checkpoints = Checkpoints(self.run, self.trainer)
        labels = None if self.trainer.task.label_free else data.labels.numpy()
        self.rank_rows, self.confirm_rows = halves(data.indices("val"), self.seed, labels)
        self.noted_saturation = False

    def check_budget(self) -> None:
        """Raise where everything is spent."""
        forward, backward, seconds, _ = self.run.cost("free/")
        if forward + backward >= self.most_passes or seconds >= self.most_seconds:
            raise BudgetSpentError

    def unit(self, key: str, work: Callable[[], tuple[dict[str, Any], Losses | None]]) -> Unit:
        """A unit of the run, if there is budget for it."""
        if self.run.find(key) is None:
            self.check_budget()
        return self.run.unit(key, work)

    def training(self, key: str, train: Callable[[], State]) -> LazyState:
        """A training as a unit of the run, if there is budget for it."""
        if self.run.find(key) is None:
            self.check_budget()
        return self.checkpoints.training(key, train)

    def losses(self, key: str, about: dict[str, Any], work: Callable[[], Losses], *, keep: bool = False) -> Unit:
        """Losses as a unit: all of them, or their mean and standard error; they must be finite."""

        def summarised() -> tuple[dict[str, Any], Losses | None]:
            losses = work()
            if failed := not_finite(losses):
                return {**about, "failed": failed}, None
            return {**about, "loss": mean(losses), "loss_se": se(losses)}, losses if keep else None

        return self.unit(key, summarised)

    def baseline(self, key: str, about: dict[str, Any], work: Callable[[], Losses]) -> Losses:
        """The losses of the tree as it is; without them nothing can be compared."""
        unit = self.losses(key, {**about, "candidate": "yardstick"}, work, keep=True)
        self.note_saturation(unit.losses)
        if unit.losses is None:
            raise TaskError(f"the model must train without the candidate first, but {unit.value['failed']} ({key})")
        return unit.losses

    def note_saturation(self, losses: Losses | None) -> None:
        """Report once that every validation sample is right already: then nothing can be told apart."""
        data = self.trainer.data
        surely_right = np.log(2) / (data.num_classes if data.multilabel else 1)
        if self.noted_saturation or self.trainer.task.label_free or losses is None or losses.max() >= surely_right:
            return
        self.noted_saturation = True
        self.watch(Note(SATURATED))

    def score(
        self,
        key: str,
        about: dict[str, Any],
        entry: Entry,
        baseline: Losses,
        work: Callable[[], Losses],
        keep: bool = False,
    ) -> Score:
        """An entry against the baseline; a failure is recorded with its reason."""
        about = {**about, "candidate": str(entry.transform), "p": entry.p}

        def scored() -> tuple[dict[str, Any], Losses | None]:
            losses, failed = attempt(work)
            failed = failed or not_finite(losses)
            if losses is None or failed:
                return {**about, "failed": failed}, None
            gains = baseline - losses
            scores = {"loss": mean(losses), "loss_se": se(losses), "gain": mean(gains), "gain_se": se(gains)}
            return {**about, **scores}, gains if keep else None

        unit = self.unit(key, scored)
        value = unit.value
        self.watch(Scored(value["node"], value["candidate"], value.get("loss")))
        if "failed" in value:
            return Score(entry, failed=value["failed"])
        loss, loss_se, gain, gain_se = (value[name] for name in ("loss", "loss_se", "gain", "gain_se"))
        return Score(entry, loss, loss_se, gain, gain_se, gains=unit.losses)


@dataclass(frozen=True)
class ScorerOptions:
    """The options of a scorer; a subclass for each scorer."""

    sure: float = 1.0
    """A winner is kept if its gain on fresh data is more than this many standard errors."""

    def __post_init__(self) -> None:
        number("sure", self.sure, 0, 1000)

    def check(self, task: Task) -> None:
        """Raise for a task that this scorer cannot judge by."""

    def scorer(self, context: ScoringContext) -> Any:
        """The scorer, ready for work."""
        raise NotImplementedError

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """The most scorings that a whole search may need (density, retrain)."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """The options as a value for a file."""
        return {"name": type(self).__name__.lower(), **dataclasses.asdict(self)}


def best(scores: Sequence[Score], count: int) -> list[Score]:
    """The scores with the lowest loss; the earlier where two are equal; never a failed one."""
    return sorted((score for score in scores if not score.failed), key=lambda score: score.loss)[:count]


def nothing_to_choose(scores: Sequence[Score]) -> Built:
    """An empty node where every candidate failed, or where there is none."""
    why = f"every candidate failed, the first with: {scores[0].failed}" if scores else "there is no candidate"
    return Built(Identity(), 0.0, False, why=why)


def confirmed(entry: Entry, scores: Sequence[Score], sure: float) -> Built:
    """Whether the winner improves on data that did not choose it, given its scores there."""
    failed = [score.failed for score in scores if score.failed]
    if failed:
        return Built(Identity(), 0.0, False, why=f"{entry.transform} failed when it was to be confirmed: {failed[0]}")
    gains: Losses = np.mean([score.gains for score in scores if score.gains is not None], axis=0)
    gain, error = mean(gains), se(gains)
    improves = gain > sure * error
    why = "" if improves else f"{entry.transform} p={entry.p:g} was best, but not on fresh data"
    return Built(entry.transform, entry.p, improves, gain, error, why)


def distinct(space: Sequence[Transform]) -> list[Transform]:
    """The candidates without Identity, and without those that differ in a magnitude that has no effect."""
    seen: set[object] = set()
    candidates = []
    for candidate in space:
        identity: object = candidate.name if isinstance(candidate, Plain) else candidate
        if not isinstance(candidate, Identity) and identity not in seen:
            seen.add(identity)
            candidates.append(candidate)
    return candidates


def halves(rows: Rows, seed: int, labels: NDArray[Any] | None = None) -> tuple[Rows, Rows]:
    """Two halves of the validation samples, one to choose by, one to confirm by, with the classes in both."""
    drawn = Key.of(seed, rows, role="halves").uniform()
    classes = np.zeros(len(rows), np.int64) if labels is None else strata(labels[rows])
    order = rows[np.lexsort((drawn, classes))]
    return np.sort(order[1::2]), np.sort(order[::2])


def not_finite(losses: Losses | None) -> str:
    """Why losses are of no use; empty where they are finite."""
    count = 0 if losses is None else int((~np.isfinite(losses)).sum())
    return f"{count} losses are not finite" if count else ""


def mean(values: Losses) -> float:
    """The mean as a plain number."""
    return float(values.mean())


def se(values: Losses) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
