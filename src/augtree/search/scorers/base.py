"""What the scorers share: the bench they work at, paired scores, and the confirmation of a winner."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.data.splits import strata
from augtree.errors import number
from augtree.keys import Key
from augtree.policies import Tree
from augtree.runs.store import Run
from augtree.search.grow import BudgetSpentError, Built
from augtree.tasks.base import Task
from augtree.training.trainer import Rows, State, Trainer, seed_of
from augtree.transforms import Identity
from augtree.transforms.base import Transform
from augtree.transforms.images import Plain

Losses = NDArray[np.float64]
LONGEST_REASON = 300


class Entry(NamedTuple):
    """A candidate at a probability."""

    transform: Transform
    p: float


class Score(NamedTuple):
    """How an entry did: the mean loss and its gain on the yardstick, each with a standard error."""

    entry: Entry
    loss: float = float("inf")
    loss_se: float = 0.0
    gain: float = float("-inf")
    gain_se: float = 0.0
    failed: str = ""
    gains: Losses | None = None
    """The gain on each sample, where that was kept."""


class Model:
    """A trained model, read when it is needed: from memory or from its file, and trained again where that is lost."""

    def __init__(self, again: Callable[[], State], state: State | None = None) -> None:
        self.again, self.state = again, state

    def __call__(self) -> State:
        self.state = self.state or self.again()
        return self.state

    def forget(self) -> None:
        """Let the memory go."""
        self.state = None


@dataclass
class Bench:
    """What a scorer works with."""

    trainer: Trainer
    space: Sequence[Transform]
    probabilities: tuple[float, ...]
    seed: int
    run: Run
    most_passes: float = float("inf")
    most_seconds: float = float("inf")
    told: Callable[..., None] = lambda *_, **__: None
    """Progress: told(what, **about)."""

    def __post_init__(self) -> None:
        self.candidates, data = distinct(self.space), self.trainer.data
        labels = None if self.trainer.task.label_free else data.labels.numpy()
        self.rank_rows, self.confirm_rows = halves(data.indices("val"), self.seed, labels)
        self.run.meter.read = lambda: (self.trainer.passes.forward, self.trainer.passes.backward)

    def check_budget(self) -> None:
        """Raise where everything is spent."""
        forward, backward, seconds, _ = self.run.cost("free/")
        if forward + backward >= self.most_passes or seconds >= self.most_seconds:
            raise BudgetSpentError

    def training(self, key: str, work: Callable[[], State]) -> Model:
        """A model that is trained now, unless it has been."""
        name, made = key.replace("/", "-"), []

        def done() -> tuple[dict[str, Any], None]:
            state = work()
            made.append(state)
            return {"sha256": self.run.keep(name, state.tensors, state.step), "step": state.step}, None

        if self.run.find(key) is None:
            self.check_budget()
        unit = self.run.unit(key, done)

        def again() -> State:
            tensors = self.run.kept(name, unit.value["sha256"]) or self.once_more(work).tensors
            moved = {name: tensor.to(self.trainer.device) for name, tensor in tensors.items()}
            return State(moved, unit.value["step"])

        return Model(again, *made)

    def once_more(self, work: Callable[[], State]) -> State:
        """What was lost, made again; it has been counted before."""
        before = replace(self.trainer.passes)
        state = work()
        self.trainer.passes.forward, self.trainer.passes.backward = before.forward, before.backward
        return state

    def losses(self, key: str, about: dict[str, Any], work: Callable[[], Losses], *, keep: bool = False) -> Any:
        """A unit that gives losses: kept as a whole, or as mean and standard error. Not a number is a failure."""

        def done() -> tuple[dict[str, Any], Losses | None]:
            values = work()
            if not np.isfinite(values).all():
                return {**about, "failed": f"{int((~np.isfinite(values)).sum())} losses are not finite"}, None
            return {**about, "loss": mean(values), "loss_se": se(values)}, values if keep else None

        if self.run.find(key) is None:
            self.check_budget()
        return self.run.unit(key, done)

    def yardstick(self, key: str, about: dict[str, Any], work: Callable[[], Losses]) -> Losses:
        """The losses of the tree as it is; without them nothing can be compared."""
        from augtree.errors import TaskError

        unit = self.losses(key, {**about, "candidate": "yardstick"}, work, keep=True)
        if unit.losses is None:
            raise TaskError(f"the model must train without the candidate first, but {unit.value['failed']} ({key})")
        found: Losses = unit.losses
        return found

    def score(
        self,
        key: str,
        about: dict[str, Any],
        entry: Entry,
        yard: Losses,
        work: Callable[[], Losses],
        keep: bool = False,
    ) -> Score:
        """An entry against the yardstick; whatever goes wrong with it is written down as the reason."""

        def done() -> tuple[dict[str, Any], Losses | None]:
            try:
                values = work()
            except (BudgetSpentError, MemoryError, torch.OutOfMemoryError, OSError):
                raise  # nothing that the candidate has to answer for
            except Exception as error:
                return {**told, "failed": f"{type(error).__name__}: {error}"[:LONGEST_REASON]}, None
            if not np.isfinite(values).all():
                return {**told, "failed": f"{int((~np.isfinite(values)).sum())} losses are not finite"}, None
            gains = yard - values
            scores = {"loss": mean(values), "loss_se": se(values), "gain": mean(gains), "gain_se": se(gains)}
            return {**told, **scores}, gains if keep else None

        told = {**about, "candidate": str(entry.transform), "p": entry.p}
        if self.run.find(key) is None:
            self.check_budget()
        unit = self.run.unit(key, done)
        found = unit.value
        self.told("scored", **found)
        if "failed" in found:
            return Score(entry, failed=found["failed"])
        loss, loss_se, gain, gain_se = (found[name] for name in ("loss", "loss_se", "gain", "gain_se"))
        return Score(entry, loss, loss_se, gain, gain_se, gains=unit.losses)


@dataclass(frozen=True)
class ScorerOptions:
    """The options of a scorer; `at` makes it ready for work."""

    sure: float = 1.0
    """A winner is kept if its gain on fresh data is more than so many standard errors."""

    def __post_init__(self) -> None:
        number("sure", self.sure, 0, 1000)

    def check(self, task: Task) -> None:
        """Raise for a task that this scorer cannot judge by."""

    def at(self, bench: Bench) -> Any:
        """The scorer at its bench."""
        raise NotImplementedError

    def scorings(self, depth: int, candidates: Sequence[Transform], probabilities: int) -> int:
        """How many scorings a whole search may need."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """The options as a value for a file."""
        return {"name": type(self).__name__.lower(), **dataclasses.asdict(self)}


def best(scores: Sequence[Score], count: int) -> list[Score]:
    """The scores with the lowest loss; the earlier where two are equal; never a failed one."""
    return sorted((s for s in scores if not s.failed), key=lambda s: s.loss)[:count]


def verdict(entry: Entry, gains: Sequence[Score], sure: float) -> Built:
    """Whether the winner improves on data that did not choose it."""
    failed = [score.failed for score in gains if score.failed]
    if failed:
        return Built(Identity(), 0.0, False, why=f"{entry.transform} failed when it was to be confirmed: {failed[0]}")
    kept = [score.gains for score in gains if score.gains is not None]
    values: Losses = np.mean(kept, axis=0)  # of each sample, over the repeats
    gain, error = mean(values), se(values)
    improves = gain > sure * error
    why = "" if improves else f"{entry.transform} p={entry.p:g} was best, but not on fresh data"
    return Built(entry.transform, entry.p, improves, gain, error, why)


def distinct(space: Sequence[Transform]) -> list[Transform]:
    """The candidates without Identity, and without those that differ in a magnitude that has no effect."""
    seen: set[object] = set()
    out = []
    for candidate in space:
        what: object = candidate.name if isinstance(candidate, Plain) else candidate
        if not isinstance(candidate, Identity) and what not in seen:
            seen.add(what)
            out.append(candidate)
    return out


def halves(rows: Rows, seed: int, labels: NDArray[Any] | None = None) -> tuple[Rows, Rows]:
    """Two halves of the validation samples, one to choose by, one to confirm by, with the classes in both."""
    drawn = Key.of(seed, rows, role="halves").uniform()
    classes = np.zeros(len(rows), np.int64) if labels is None else strata(labels[rows])
    order = rows[np.lexsort((drawn, classes))]
    return np.sort(order[1::2]), np.sort(order[::2])


def mean(values: Losses) -> float:
    """The mean."""
    return float(values.mean())


def se(values: Losses) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def with_entry(tree: Tree, node: int, entry: Entry) -> Tree:
    """The tree with an entry at a node."""
    return tree.with_node(node, entry.transform, entry.p)


__all__ = ["Bench", "Entry", "Losses", "Score", "ScorerOptions", "best", "distinct", "halves", "seed_of", "verdict"]
