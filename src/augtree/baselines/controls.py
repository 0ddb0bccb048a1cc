"""Ways to train that are no single training: as long as a search took, averages of cool-downs, whole searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from augtree.data import Dataset
from augtree.errors import ArgumentError, number, whole_number
from augtree.forests.options import Weighting
from augtree.forests.search import search_forest
from augtree.policies.codec import Reader, to_json
from augtree.search.finish import averaged
from augtree.search.scorers import Cooldown, ScorerOptions
from augtree.search.search import parsed_budget, search_tree, space_again, space_spec
from augtree.training.schedules import cool_down, rates
from augtree.training.trainer import State, Trainer, seed_of
from augtree.transforms import Space
from augtree.transforms.base import Policy

RENEWED = 0.05
"""An average renews its batch statistics over no more than this share of the steps."""


@dataclass(frozen=True)
class Longer:
    """A training of `length` trainings with a policy; without one, with the best free policy of the comparison."""

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
    """A trunk and cool-downs on one policy, `length` trainings in all, and the average of the cool-downs' models.

    Without a policy, that is the best free one of the comparison. The control of a search's finished model: what
    averaging alone brings. The cool-downs take half of `length` at most.
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
        task, one = trainer.task, trainer.total_steps
        cool = min(self.cool, self.length / 2 / self.count)
        renew = [0.0] * min(Cooldown().renew, max(1, round(RENEWED * self.length * one)))
        trunk = max(1, round((self.length - self.count * cool) * one) - len(renew))
        rise = rates("constant-linear", one, warmup=task.warmup, decay=0)
        level = [task.rate * share for share in [*rise, *[1.0] * trunk][:trunk]]
        start = trainer.train(trainer.fresh(seed), policy, level, seed_of(seed, "trunk"))
        down = [task.rate * share for share in cool_down(max(1, round(cool * one)))]
        states = [trainer.train(start, policy, down, seed_of(seed, "cool", i)) for i in range(self.count)]
        return trainer.train(averaged(states), policy, renew, seed_of(seed, "renew"))

    def spec(self) -> dict[str, Any]:
        """As a value for a file."""
        about = {"length": float(self.length), "cool": float(self.cool), "count": int(self.count)}
        return {"way": "soup", **about, "policy": self.policy and to_json(self.policy)}


@dataclass(frozen=True)
class Searched:
    """A whole search for each seed; what is judged is its finished model."""

    space: Space
    budget: str | float | None = None
    scorer: ScorerOptions = field(default_factory=Cooldown)
    depth: int = 3
    weighting: Weighting | None = None
    """For a forest: how its weights are learned."""

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise ArgumentError("space", "must be a space, such as spaces.auto(data)", self.space)
        parsed_budget(self.budget)
        if not isinstance(self.scorer, Cooldown):
            rule = "must be augtree.search.Cooldown(...): the other scorers end without a finished model"
            raise ArgumentError("scorer", rule, self.scorer)
        whole_number("depth", self.depth, 1, 10)
        if not isinstance(self.weighting, Weighting | None):
            raise ArgumentError("weighting", "must be an augtree.Weighting, or None", self.weighting)

    def fit(self, trainer: Trainer, data: Dataset, seed: int) -> State:
        """The search, in memory; what it costs is counted."""
        how: dict[str, Any] = {"depth": self.depth, "scorer": self.scorer, "budget": self.budget, "seed": seed}
        if self.weighting is None:
            result: Any = search_tree(data, trainer.task, self.space, **how)
        else:
            result = search_forest(data, trainer.task, self.space, **how, **self.weighting.spec())
        trainer.passes.forward += result.passes.forward
        trainer.passes.backward += result.passes.backward
        state: State = result.state
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


def control_again(spec: Mapping[str, Any], reader: Reader) -> Control:
    """A control from its value in a file."""
    from augtree.search.search import scorer_again

    given = {name: value for name, value in spec.items() if name != "way"}
    if spec["way"] == "search":
        given |= {"space": space_again(spec["space"], reader), "scorer": scorer_again(spec["scorer"], reader.path)}
        given["weighting"] = spec["weighting"] and Weighting(**spec["weighting"])
        return Searched(**given)
    given["policy"] = spec["policy"] and reader.policy(spec["policy"])
    return Longer(**given) if spec["way"] == "longer" else Soup(**given)
