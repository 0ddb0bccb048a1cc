"""The result of a search: tree, model, importances, every scored candidate, cost, and how the free policies do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from augtree.policies import Tree
from augtree.runs.store import Run
from augtree.search.importance import Importance
from augtree.search.verdict import verdict_of
from augtree.tables import counted, csv_text, html_lines
from augtree.tasks.trainer import Trainer
from augtree.training.state import Passes, State

HISTORY = (
    "node",
    "round",
    "look",
    "test",
    "at",
    "candidate",
    "p",
    "steps",
    "loss",
    "loss_se",
    "gain",
    "gain_se",
    "failed",
    "seconds",
    "forward",
    "backward",
)


@dataclass(frozen=True)
class Cost:
    """What a search has cost.

    Examples
    --------
    >>> print(Cost(forward=4000, backward=2000, training_equivalents=1.5, seconds=9.6, scorings=10))
    1.50 training equivalents (4,000 forward and 2,000 backward sample passes), 10 scorings, 10 s

    """

    forward: int
    """The number of samples that went forward through a model."""
    backward: int
    """The number of samples that went backward through a model."""
    training_equivalents: float
    """Both together, in units of one whole training."""
    seconds: float
    """The time that all units of work took."""
    scorings: int
    """The number of scored candidates and baselines, without confirmations."""
    check_equivalents: float = 0.0
    """The training equivalents that compared the tree with the free policies."""
    model_equivalents: float = 0.0
    """The training equivalents in the finished model: the trunk and the last cool-downs."""

    def __str__(self) -> str:
        parts = {"to check the result": self.check_equivalents, "in the finished model": self.model_equivalents}
        shares = "".join(f", {value:.2f} of them {what}" for what, value in parts.items() if value)
        return (
            f"{self.training_equivalents:.2f} training equivalents{shares} ({self.forward:,} forward and"
            f" {self.backward:,} backward sample passes), {counted(self.scorings, 'scoring')}, {self.seconds:.0f} s"
        )


@dataclass(frozen=True)
class FreePolicy:
    """How a policy does in a training from the start, on the validation half that confirmed the nodes."""

    loss: float
    """The mean loss."""
    loss_se: float
    """Its standard error."""
    metric: float
    """The task's metric."""
    behind: float
    """How much higher the loss is than the tree's; negative where the policy is better."""
    behind_se: float
    """The standard error of this difference."""


@dataclass(frozen=True)
class TreeResult:
    """The result of `search_tree`.

    Examples
    --------
    >>> free = {"tree": FreePolicy(0.5, 0.1, 0.9, 0.0, 0.0), "randaugment": FreePolicy(0.8, 0.1, 0.8, 0.3, 0.01)}
    >>> result = TreeResult(Tree(), {}, [], Cost(0, 0, 0.0, 0.0, 0), free, notes=[], deterministic=True)
    >>> print(result.verdict())
    The tree's validation loss is 0.3000 ± 0.0100 below that of randaugment, the best free policy.

    """

    tree: Tree
    """The policy that was found."""
    importances: Mapping[str, Importance]
    """How much each transform of the tree brought, the largest first."""
    history: Sequence[Mapping[str, Any]]
    """Every scored candidate, in the order of scoring."""
    cost: Cost
    """What the search has cost."""
    free: Mapping[str, FreePolicy]
    """The free policies by name, and "tree"; empty without the check."""
    notes: Sequence[str]
    """What the user should know: why nodes stayed empty, candidates that failed, an early end."""
    deterministic: bool
    """Whether the same search gives the same result to the byte."""
    metric: str = "accuracy"
    """The task's metric."""
    out: Path | None = None
    """The run's folder."""
    mixture: Tree | None = None
    """Scorer cooldown: the mixture of all that stayed in play."""
    single: Tree | None = None
    """Scorer cooldown: the best of the last cool-downs' policies that is no mixture."""
    model: nn.Module | None = field(default=None, repr=False)
    """Scorer cooldown: the finished model, in eval mode; pictures are normalised by `mean` and `std` of 0..1."""
    state: State | None = field(default=None, repr=False)
    """The model as the trainer keeps it."""
    mean: tuple[float, ...] = ()
    """The mean of each channel of the training pictures."""
    std: tuple[float, ...] = ()
    """The standard deviation of each channel of the training pictures."""
    members: tuple[str, ...] = ()
    """The cool-downs whose average the model is."""
    findings: Sequence[Mapping[str, Any]] = ()
    """The evidence of each look and test on each factor: its harm, its standard error, whether it left play."""
    cooled: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Validation loss and metric after each of the last cool-downs."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """The finished model's metrics on the validation data."""

    @property
    def passes(self) -> Passes:
        """The samples that went through models in this search."""
        return Passes(self.cost.forward, self.cost.backward)

    @property
    def out_of_play(self) -> dict[str, Mapping[str, Any]]:
        """What left play, or did not come into play, with the finding that decided it."""
        last = {finding["factor"]: finding for finding in self.findings}
        return {factor: finding for factor, finding in last.items() if finding["left"]}

    @property
    def best_free(self) -> str | None:
        """The free policy with the lowest loss."""
        names = [name for name in self.free if name != "tree"]
        return min(names, key=lambda name: self.free[name].loss, default=None)

    @property
    def beats_free(self) -> bool | None:
        """Whether the tree is better than every free policy; None without the check."""
        return None if self.best_free is None else self.free["tree"].loss < self.free[self.best_free].loss

    def verdict(self) -> str:
        """What the search found, in plain words."""
        return verdict_of(self)

    def _repr_html_(self) -> str:
        """The verdict, the tree and the cost, in a notebook."""
        return html_lines([self.verdict()]) + self.tree._repr_html_() + html_lines([f"Cost: {self.cost}."])

    def to_json(self) -> str:
        """Everything but the history."""
        content = {
            "tree": str(self.tree),
            "verdict": self.verdict(),
            "importances": {name: asdict(value) for name, value in self.importances.items()},
            "free": {name: asdict(value) for name, value in self.free.items()},
            "mixture": None if self.mixture is None else str(self.mixture),
            "single": None if self.single is None else str(self.single),
            "members": list(self.members),
            "findings": [dict(finding) for finding in self.findings],
            "cooled": {name: list(values) for name, values in self.cooled.items()},
            "measures": dict(self.measures),
            "cost": asdict(self.cost),
            "notes": list(self.notes),
            "deterministic": self.deterministic,
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def history_csv(self) -> str:
        """Every scored candidate, a row each."""
        return csv_text(self.history, HISTORY)


def history(run: Run) -> list[dict[str, Any]]:
    """A row for each scored candidate, in the order of scoring."""
    return [
        {**unit.value, "seconds": unit.seconds, "forward": unit.forward, "backward": unit.backward}
        for unit in run.units()
        if "candidate" in unit.value
    ]


def cost_of(run: Run, trainer: Trainer, *excluded: str) -> Cost:
    """What a run has cost so far, without the units of excluded prefixes."""
    training_passes = trainer.total_steps * trainer.passes_per_step
    forward, backward, seconds, _ = run.cost(*excluded)
    scorings = sum(unit.value.get("round", "confirm") != "confirm" for unit in run.units("node/"))
    scorings += sum("candidate" in unit.value for prefix in ("look/", "test/", "cool/") for unit in run.units(prefix))
    check = passes_in(run, "free/") / training_passes
    equivalents = round((forward + backward) / training_passes, 3)
    return Cost(forward, backward, equivalents, round(seconds, 2), scorings, round(check, 3))


def passes_in(run: Run, *prefixes: str) -> int:
    """The passes of the units with some prefixes."""
    return sum(unit.forward + unit.backward for prefix in prefixes for unit in run.units(prefix))
