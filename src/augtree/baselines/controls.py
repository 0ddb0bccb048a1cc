"""Methods that take more than one training: longer trainings, averages of cool-downs, whole searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from augtree.baselines.parts import Parts
from augtree.errors import ArgumentError, number, whole_number
from augtree.forests.options import Weighting
from augtree.forests.search import search_forest
from augtree.policies.codec import Reader, to_json
from augtree.runs.spec import restore_space, space_spec
from augtree.search.cooldowns import average_of
from augtree.search.options import SearchOptions, restore_scorer
from augtree.search.scorers import Cooldown, ScorerOptions
from augtree.search.search import search_tree
from augtree.tasks.trainer import Trainer
from augtree.training.schedules import cooldown_rates, rates
from augtree.training.state import State, seed_of
from augtree.transforms import Space
from augtree.transforms.base import Policy

RENEWED = 0.05
"""An average renews its batch statistics over no more than this share of the steps."""


@dataclass(frozen=True)
class Longer:
    """One training with a policy, as long as `length` trainings: a control for what a search costs.

    Parameters
    ----------
    length
        The length, in trainings.
    policy
        A policy; by default the best free policy of the comparison.

    Examples
    --------
    >>> import augtree as at
    >>> from augtree.comparison import Longer
    >>> policies = {"none": None, "none, twice as long": Longer(2)}
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> once, twice = at.compare(data, task, policies, seeds=1).lines()
    >>> round(twice.cost - once.cost, 3)
    1.0

    """

    length: float
    policy: Policy | None = None

    def __post_init__(self) -> None:
        number("length", self.length, 0, 1e6, open_low=True)
        check_policy(self.policy)

    def fit(self, trainer: Trainer, policy: Policy, seed: int) -> State:
        """The training."""
        return trainer.fit(policy, seed, max(1, round(self.length * trainer.total_steps)))

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        return {"way": "longer", "length": float(self.length), "policy": self.policy and to_json(self.policy)}


@dataclass(frozen=True)
class Soup:
    """A trunk and cool-downs with one policy, and the average of the cool-downs' models.

    This is the control for the finished model of a search: what averaging alone gains.

    Parameters
    ----------
    length
        The length of all parts together, in trainings.
    policy
        A policy; by default the best free policy of the comparison.
    cool
        The length of a cool-down, in trainings; all cool-downs take half of `length` at most.
    count
        The number of cool-downs.

    Examples
    --------
    >>> from augtree.comparison import Soup
    >>> Soup(2, count=3).spec()["count"]
    3

    """

    length: float
    policy: Policy | None = None
    cool: float = 0.2
    count: int = 2

    def __post_init__(self) -> None:
        number("length", self.length, 0, 1e6, open_low=True)
        check_policy(self.policy)
        number("cool", self.cool, 0, 10, open_low=True)
        whole_number("count", self.count, 1, 1000)

    def fit(self, trainer: Trainer, policy: Policy, seed: int) -> State:
        """The trunk, its cool-downs, their average."""
        task, training_steps = trainer.task, trainer.total_steps
        cool = min(self.cool, self.length / 2 / self.count)
        renew = [0.0] * min(Cooldown().renew, max(1, round(RENEWED * self.length * training_steps)))
        trunk = max(1, round((self.length - self.count * cool) * training_steps) - len(renew))
        rise = rates("constant-linear", training_steps, warmup=task.warmup, decay=0)
        level = [task.rate * share for share in [*rise, *[1.0] * trunk][:trunk]]
        start = trainer.train(trainer.fresh(seed), policy, level, seed_of(seed, "trunk"))
        down = [task.rate * share for share in cooldown_rates(max(1, round(cool * training_steps)))]
        states = [trainer.train(start, policy, down, seed_of(seed, "cool", i)) for i in range(self.count)]
        return trainer.train(average_of(states), policy, renew, seed_of(seed, "renew"))

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        about = {"length": float(self.length), "cool": float(self.cool), "count": int(self.count)}
        return {"way": "soup", **about, "policy": self.policy and to_json(self.policy)}


@dataclass(frozen=True)
class Searched:
    """A whole search for each seed, judged by its finished model.

    Parameters
    ----------
    space
        The transforms to search among.
    budget, depth
        As in `search_tree`.
    scorer
        `augtree.search.Cooldown`, whose searches end with a finished model.
    weighting
        For a forest: how its weights are learned.

    Examples
    --------
    >>> import augtree as at
    >>> from augtree.comparison import Searched
    >>> Searched(at.spaces.graphs(), budget=3).budget
    3

    """

    space: Space
    budget: str | float | None = None
    scorer: ScorerOptions = field(default_factory=Cooldown)
    depth: int = 3
    weighting: Weighting | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise ArgumentError("space", "must be a space, such as spaces.auto(data)", self.space)
        if not isinstance(self.scorer, Cooldown):
            rule = "must be augtree.search.Cooldown(...): the other scorers end without a finished model"
            raise ArgumentError("scorer", rule, self.scorer)
        SearchOptions(depth=self.depth, budget=self.budget)
        if not isinstance(self.weighting, Weighting | None):
            raise ArgumentError("weighting", "must be an augtree.Weighting, or None", self.weighting)

    def fit(self, trainer: Trainer, seed: int, parts: Parts) -> State:
        """The search; what it costs is counted."""
        arguments: dict[str, Any] = {"depth": self.depth, "scorer": self.scorer, "budget": self.budget, "seed": seed}
        search: Callable[..., Any] = search_tree if self.weighting is None else search_forest
        weighting = {} if self.weighting is None else self.weighting.spec()
        state: State = parts.search(
            "search", search, trainer.data, trainer.task, self.space, **arguments, **weighting
        ).state
        return state

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        weighting = None if self.weighting is None else self.weighting.spec()
        budget = self.budget if self.budget is None or isinstance(self.budget, str) else float(self.budget)
        about = {"budget": budget, "scorer": self.scorer.spec(), "depth": int(self.depth), "weighting": weighting}
        return {"way": "search", "space": space_spec(self.space), **about}


Control = Longer | Soup | Searched


def check_policy(policy: object) -> None:
    """Raise for what is neither a policy nor None."""
    if not isinstance(policy, Policy | None):
        raise ArgumentError("policy", "must be a policy, or None for the best free one of the comparison", policy)


def restore_control(spec: Mapping[str, Any], reader: Reader) -> Control:
    """A control from its value in a file."""
    given = {name: value for name, value in spec.items() if name != "way"}
    if spec["way"] == "search":
        given |= {
            "space": restore_space(spec["space"], reader),
            "scorer": restore_scorer(spec["scorer"], reader.path),
        }
        given["weighting"] = spec["weighting"] and Weighting.from_spec(spec["weighting"])
        return Searched(**given)
    given["policy"] = spec["policy"] and reader.policy(spec["policy"])
    return Longer(**given) if spec["way"] == "longer" else Soup(**given)
