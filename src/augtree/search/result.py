"""What a search gives: the tree, what mattered, every scored candidate, the cost, and how the free policies do."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augtree.policies import Tree
from augtree.runs.store import Run
from augtree.search.grow import Growth
from augtree.tasks.trainer import seed_of

BOOTSTRAPS = 1000
HISTORY = ("node", "round", "candidate", "p", "steps", "loss", "loss_se", "gain", "gain_se", "failed", "seconds")
HISTORY_PASSES = ("forward", "backward")


@dataclass(frozen=True)
class Cost:
    """What a search took."""

    forward: int
    """Samples that went forward through a model."""
    backward: int
    """Samples that went backward."""
    training_equivalents: float
    """Both together, in units of one whole training."""
    seconds: float
    scorings: int
    """Scored candidates, yardsticks included; confirmations are not."""
    check_equivalents: float = 0.0
    """What of the training equivalents went into holding the tree against the free policies."""

    def __str__(self) -> str:
        return (
            f"{self.training_equivalents:.1f} training equivalents, {self.check_equivalents:.1f} of them to check the"
            f" result ({self.forward:,} forward and {self.backward:,} backward sample passes), {self.scorings}"
            f" scorings, {self.seconds:.0f} s"
        )


@dataclass(frozen=True)
class Importance:
    """The total fall of the score that a transform brought when it was confirmed; its spread over bootstraps."""

    gain: float
    spread: float

    def __str__(self) -> str:
        return f"{self.gain:.4f} ± {self.spread:.4f}"


@dataclass(frozen=True)
class FreePolicy:
    """How a policy does in a training from the start, on the validation half that confirmed the nodes."""

    loss: float
    loss_se: float
    metric: float
    behind: float
    """How much higher its loss is than the tree's; negative where it is better."""
    behind_se: float


@dataclass(frozen=True)
class TreeResult:
    """The outcome of `search_tree`."""

    tree: Tree
    importances: Mapping[str, Importance]
    history: Sequence[Mapping[str, Any]]
    cost: Cost
    free: Mapping[str, FreePolicy]
    """The free policies by name, and "tree"; empty where the check was left out."""
    notes: Sequence[str]
    """What the user should know: nodes that stayed empty and why, candidates that failed, an early end."""
    deterministic: bool
    metric: str = "accuracy"
    out: Path | None = None

    @property
    def best_free(self) -> str | None:
        """The free policy with the lowest loss."""
        names = [name for name in self.free if name != "tree"]
        return min(names, key=lambda name: self.free[name].loss, default=None)

    @property
    def beats_free(self) -> bool | None:
        """Whether the tree does better than every free policy; None where that was not checked."""
        return None if self.best_free is None else self.free["tree"].loss < self.free[self.best_free].loss

    def verdict(self) -> str:
        """Whether the search was worth it, in a sentence."""
        name = self.best_free
        if name is None:
            return "The tree was not held against the free policies."
        other = self.free[name]
        side = "below" if self.beats_free else "above"
        difference = f"{abs(other.behind):.4f} ± {other.behind_se:.4f} {side} that of {name}, the best free policy"
        if other.behind == 0:
            return f"The search found nothing that is better than {name}, which is free. Use {name}."
        if abs(other.behind) <= 2 * other.behind_se:
            return f"The tree's validation loss is {difference}: within the noise of one training each (see compare)."
        end = "." if self.beats_free else f": the search did not help. Use {name}."
        return f"The tree's validation loss is {difference}{end}"

    def to_json(self) -> str:
        """Everything but the history."""
        content = {
            "tree": str(self.tree),
            "verdict": self.verdict(),
            "importances": {name: asdict(value) for name, value in self.importances.items()},
            "free": {name: asdict(value) for name, value in self.free.items()},
            "cost": asdict(self.cost),
            "notes": list(self.notes),
            "deterministic": self.deterministic,
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def history_csv(self) -> str:
        """Every scored candidate, a row each."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [*HISTORY, *HISTORY_PASSES], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.history)
        return text.getvalue()


def history(run: Run) -> list[dict[str, Any]]:
    """A row for each scored candidate, in the order of scoring."""
    return [
        {**unit.value, "seconds": unit.seconds, "forward": unit.forward, "backward": unit.backward}
        for unit in run.units()
        if "candidate" in unit.value
    ]


def importances(growth: Growth, run: Run, seed: int) -> dict[str, Importance]:
    """What each transform in the tree brought, the largest first."""
    draws: dict[str, list[Any]] = {}
    gains: dict[str, float] = {}
    for node, found in growth.built:
        if not found.improves:
            continue
        name = found.transform.name
        what = {"candidate": str(found.transform), "p": found.p}
        units = [unit for unit in run.units(f"node/{node}/confirm") if what.items() <= unit.value.items()]
        confirmed = [unit.losses for unit in units]
        values = np.mean([losses for losses in confirmed if losses is not None], axis=0)
        rng = np.random.default_rng(seed_of(seed, "bootstrap"))  # the same samples for all nodes
        drawn = values[rng.integers(len(values), size=(BOOTSTRAPS, len(values)))].mean(1)
        draws.setdefault(name, []).append(drawn)
        gains[name] = gains.get(name, 0.0) + float(values.mean())
    found_ = {name: Importance(gains[name], float(np.sum(draws[name], axis=0).std())) for name in gains}
    return dict(sorted(found_.items(), key=lambda pair: -pair[1].gain))


def cost(run: Run, passes_of_one: int) -> Cost:
    """What the run has spent so far."""
    forward, backward, seconds, _ = run.cost()
    scorings = sum(unit.value.get("round", "confirm") != "confirm" for unit in run.units("node/"))
    check = sum(unit.forward + unit.backward for unit in run.units("free/")) / passes_of_one
    total = (forward + backward) / passes_of_one
    return Cost(forward, backward, round(total, 3), round(seconds, 2), scorings, round(check, 3))
