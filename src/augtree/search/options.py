"""The options of a search, checked once; the command line, searches of trees and of forests share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from augtree.errors import ArgumentError, RunError, number, one_of, whole_number
from augtree.runs.executors import Executor, Serial, executor_of
from augtree.search.scorers import SCORERS, Cooldown, Retrain, ScorerOptions

H = tuple(round(0.1 * i, 1) for i in range(1, 11))
"""The paper's list of probabilities."""
TREE_METHODS = ("greedy", "exhaustive")
SECONDS = {"s": 1, "m": 60, "h": 3600}
INFINITY = float("inf")


class Limits(NamedTuple):
    """What a search may spend; infinite where there is no limit."""

    trainings: float = INFINITY
    """The most training equivalents."""
    seconds: float = INFINITY
    """The most seconds."""


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search, checked when they are made: all but the data, the task and the space.

    Examples
    --------
    >>> options = SearchOptions(depth=2, scorer="density", probabilities=[1.0, 0.5], budget="10m")
    >>> options.probabilities, options.limits.seconds, options.by_cooldown
    ((0.5, 1.0), 600.0, False)

    """

    depth: int = 3
    """The number of levels of the tree."""
    scorer: str | ScorerOptions = "cooldown"
    """How candidates are scored: cooldown, density or retrain."""
    probabilities: Sequence[float] = H
    """The probabilities that a node may have (density, retrain)."""
    seed: int = 0
    """The seed of everything random; the same seed gives the same result."""
    budget: str | float | None = None
    """What to spend: a time (90s, 10m, 2h) or a number of trainings; cooldown spends 2 trainings by default."""
    check: float = 1.0
    """The length of the trainings that compare the tree with the free policies; 0: none (density, retrain)."""
    method: str = "greedy"
    """Algorithm 1 (greedy), or all trees of two levels (exhaustive, needs retrain)."""
    workers: int = 1
    """The number of processes that run cool-downs; the result is the same."""
    executor: Executor | str | None = None
    """Where cool-downs run: serial, processes or ray; the result is the same."""

    def __post_init__(self) -> None:
        validated: dict[str, Any] = {
            "depth": whole_number("depth", self.depth, 1, 10),
            "scorer": resolve_scorer(self.scorer),
            "probabilities": sorted_probabilities(self.probabilities),
            "seed": whole_number("seed", self.seed, 0, 2**63 - 1),
            "check": number("check", self.check, 0, 10),
            "method": one_of("method", self.method, TREE_METHODS),
            "workers": whole_number("workers", self.workers, 1, 1024),
        }
        for name, value in validated.items():
            object.__setattr__(self, name, value)
        parse_budget(self.budget)
        executor_of(self.executor, self.workers)
        if self.budget is not None and not isinstance(self.budget, str):
            object.__setattr__(self, "budget", float(self.budget))
        if self.method == "exhaustive" and not isinstance(self.scorer, Retrain):
            raise ArgumentError("method", "exhaustive needs the scorer retrain", self.scorer_options.spec()["name"])

    @property
    def scorer_options(self) -> ScorerOptions:
        """The options of the scorer (a name has become its defaults)."""
        return resolve_scorer(self.scorer)

    @property
    def by_cooldown(self) -> bool:
        """Whether the search is one training from a trunk, and ends with a finished model."""
        return isinstance(self.scorer, Cooldown)

    @property
    def used_executor(self) -> Executor:
        """The executor that `executor` and `workers` mean."""
        return executor_of(self.executor, self.workers)

    def check_executor(self) -> None:
        """Raise an ArgumentError for workers where the scorer has no use for them in the search of one tree."""
        if self.by_cooldown or isinstance(self.used_executor, Serial):
            return
        rule = f"with the scorer {self.scorer_options.spec()['name']}, which scores candidates in turn"
        if self.executor is None:
            raise ArgumentError("workers", f"must be 1 {rule}", self.workers)
        raise ArgumentError("executor", f"must be serial {rule}", self.executor)

    @property
    def limits(self) -> Limits:
        """The budget in training equivalents and in seconds."""
        return parse_budget(self.budget)

    def arguments(self, *without: str) -> dict[str, Any]:
        """The options by name, as `search_tree` takes them, without some of them."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in without}

    def spec(self) -> dict[str, Any]:
        """The options as a value for a file. The budget is part of it where the search plans by it (cooldown)."""
        return {
            "depth": self.depth,
            "scorer": self.scorer_options.spec(),
            "probabilities": list(self.probabilities),
            "seed": self.seed,
            "check": 0.0 if self.by_cooldown else self.check,
            "method": self.method,
        } | ({"budget": self.budget} if self.by_cooldown else {})

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], folder: Path, **more: Any) -> SearchOptions:
        """The options in the specification of a run in a folder; `more` overrides them."""
        known = {field.name: spec[field.name] for field in fields(cls) if field.name in spec}
        return cls(**{**known, "scorer": restore_scorer(spec["scorer"], folder), **more})


def resolve_scorer(scorer: str | ScorerOptions) -> ScorerOptions:
    """A scorer by name, or as it is."""
    return scorer if isinstance(scorer, ScorerOptions) else SCORERS[one_of("scorer", scorer, SCORERS)]()


def restore_scorer(spec: Mapping[str, Any], folder: Path) -> ScorerOptions:
    """The scorer of a run; one that this version does not have is refused."""
    options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()}
    name = options.pop("name")
    known = {field.name for field in fields(SCORERS[name])} if name in SCORERS else None
    if known is None or not options.keys() <= known:
        raise RunError(f"{folder} was begun by another version of augtree, with the scorer {name!r}: begin it again")
    return SCORERS[name](**options)


def sorted_probabilities(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Distinct probabilities above 0, ascending."""
    ascending = tuple(sorted({number("probabilities", p, 0, 1, open_low=True) for p in probabilities}))
    if not ascending:
        raise ArgumentError("probabilities", "must not be empty", probabilities)
    return ascending


def parse_budget(budget: str | float | None) -> Limits:
    """The limits that a budget sets.

    >>> parse_budget("90m"), parse_budget(8)
    (Limits(trainings=inf, seconds=5400.0), Limits(trainings=8.0, seconds=inf))
    """
    if budget is None:
        return Limits()
    if not isinstance(budget, str):
        return Limits(trainings=number("budget", budget, 0, 1e9, open_low=True))
    unit = SECONDS.get(budget[-1:], 0)
    try:
        amount = number("budget", float(budget[:-1] if unit else budget), 0, 1e9, open_low=True)
    except ValueError:
        rule = "must be a time (90s, 10m, 2h) or training equivalents (8)"
        raise ArgumentError("budget", rule, budget) from None
    return Limits(seconds=amount * unit) if unit else Limits(trainings=amount)
