"""A forest as a method of training: its weights are learned anew in every training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from augtree.data import Dataset
from augtree.data.groups import MERGES, check_groups, group, merge_like
from augtree.errors import ArgumentError, RunError, one_of
from augtree.forests.algorithm2 import WeightedState, WeightedTraining
from augtree.forests.options import Weighting
from augtree.policies import Forest, load
from augtree.policies.codec import Reader, to_json
from augtree.runs.store import read_spec
from augtree.tasks.trainer import Trainer


@dataclass(frozen=True)
class Weighted:
    """A forest that `compare` and `evaluate` train with by Algorithm 2. With eta=0 the weights stay as they start.

    Parameters
    ----------
    forest
        A tree for each group; its weights are not used.
    weighting
        How the weights are learned.
    groups
        The forest's groups, where they are not those of the data: as `augtree.data.group` takes them.
    merge
        How groups that were too small were merged (nearest); the names of the forest's groups say which.

    Examples
    --------
    >>> import augtree as at
    >>> forest = at.Forest({"a": (at.Tree(), 0.5), "b": (at.Tree(), 0.5)})
    >>> at.Weighted(forest, at.Weighting(alpha=20)).weighting.alpha
    20

    """

    forest: Forest
    weighting: Weighting = field(default_factory=Weighting)
    groups: str | None = None
    merge: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.forest, Forest):
            raise ArgumentError("forest", "must be a forest", self.forest)
        if not isinstance(self.weighting, Weighting):
            raise ArgumentError("weighting", "must be augtree.forests.Weighting(...)", self.weighting)
        if self.merge is not None:
            one_of("merge", self.merge, MERGES)

    def on(self, data: Dataset) -> Dataset:
        """The data in the forest's groups."""
        found = data if self.groups is None else group(data, self.groups)
        if self.merge is not None:
            found = merge_like(found, self.forest.groups)
        check_groups_match("forest", "a tree", self.forest.groups, found)
        check_groups(found, self.weighting.fewest_val)
        return found

    def fit(self, trainer: Trainer, seed: int) -> WeightedState:
        """A whole training; the trainer's data is in the forest's groups."""
        training = WeightedTraining(trainer, self.forest, self.weighting, seed)
        return training.run(range(training.rounds))

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        return {
            "forest": to_json(self.forest),
            "weighting": self.weighting.spec(),
            "groups": self.groups,
            "merge": self.merge,
        }


def check_groups_match(field: str, what: str, trees: Iterable[str], data: Dataset) -> None:
    """Raise where the groups of trees are not those of the data."""
    for name in {*data.group_names} ^ {*trees}:
        rule = f"must have {what} for each group of the data ({', '.join(data.group_names)}) and no other"
        raise ArgumentError(field, rule, f"{name} {'missing' if name in data.group_names else 'beside them'}")


def restore_weighted(spec: dict[str, Any], reader: Reader) -> Weighted:
    """From the specification of a run."""
    forest = reader.policy(spec["forest"])
    if not isinstance(forest, Forest):
        raise RunError(f"a run must hold a forest here, got {forest}")
    return Weighted(forest, Weighting.from_spec(spec["weighting"]), spec["groups"], spec["merge"])


def weighted_of_run(folder: str | Path) -> Weighted | None:
    """The forest of a run, as it was trained; None for other folders."""
    path = Path(folder)
    if not (path / "spec.json").is_file():
        return None
    spec = read_spec(path)
    if spec["kind"] not in ("forest", "fit"):
        return None
    if not (path / "forest.json").is_file():
        raise RunError(f"{path} must be done before its forest can be used: augtree resume {path}")
    source = spec["data"]["source"] or {}
    forest: Any = load(path / "forest.json")
    return Weighted(forest, Weighting.from_spec(spec["weighting"]), source.get("groups"), source.get("merge"))
