"""What a search gives: the tree, what mattered, every scored candidate, the cost, and how the free policies do."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from augtree.policies import Tree
from augtree.policies.export import tree_in_words
from augtree.runs.store import Run
from augtree.search.grow import Growth
from augtree.training.trainer import Passes, State, seed_of
from augtree.transforms.traits import ALONE, GEOMETRY, TONES, TRAIT_WORDS

BOOTSTRAPS = 1000
HISTORY = (
    "node",
    "round",
    "look",
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
)
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
    model_equivalents: float = 0.0
    """What of them went into the finished model: the trunk and the last cool-downs."""

    def __str__(self) -> str:
        parts = {"to check the result": self.check_equivalents, "in the finished model": self.model_equivalents}
        shares = "".join(f", {value:.2f} of them {what}" for what, value in parts.items() if value)
        return (
            f"{self.training_equivalents:.2f} training equivalents{shares} ({self.forward:,} forward and"
            f" {self.backward:,} backward sample passes), {self.scorings} scorings, {self.seconds:.0f} s"
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
    """The answer: what to put into one's own loop."""
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
    mixture: Tree | None = None
    """Scorer cooldown: the mixture of all that stayed in play."""
    single: Tree | None = None
    """Scorer cooldown: the best of the last cool-downs' policies that is no mixture."""
    model: nn.Module | None = field(default=None, repr=False)
    """Scorer cooldown: the finished model, in eval mode; pictures are normalised by `mean` and `std` of 0..1."""
    state: State | None = field(default=None, repr=False)
    """The model as the trainer keeps it."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    members: tuple[str, ...] = ()
    """The cool-downs whose average the model is."""
    findings: Sequence[Mapping[str, Any]] = ()
    """What each look said of each factor: its harm, with a standard error, and whether it left play."""
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
        """What left play, and the finding that said so."""
        return {finding["factor"]: finding for finding in self.findings if finding["left"]}

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
        """What the search found, plainly."""
        if self.mixture is not None:
            return verdict_of_cooldown(self)
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
        text = io.StringIO()
        writer = csv.DictWriter(text, [*HISTORY, *HISTORY_PASSES], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.history)
        return text.getvalue()


def verdict_of_cooldown(result: TreeResult) -> str:
    """What left play and how sure that is, what won, and what the model reaches; a sentence each."""
    out = [left_play(finding) for finding in result.out_of_play.values()]
    if not result.findings or [f["look"] for f in result.findings if f["factor"] == ALONE] == [0]:
        out += ["Nothing was asked for harm: all of it stays in play."]
    elif not out:
        out = ["Nothing was found to do harm: all of it stays in play."]
    out += stays_in_play(result)
    if result.tree == result.mixture:
        out.append(
            "No single policy was clearly better than the mixture of what is in play: the mixture is the answer."
        )
    else:
        out.append(f"{tree_in_words(result.tree)} was clearly better than the mixture of what is in play.")
    count = len(result.members)
    average = f"the average of {count} cool-downs" if count > 1 else "one cool-down, which no average beat"
    if result.metric in result.measures:
        value = f"{result.metric} {result.measures[result.metric]:.4f} on the validation data that chose it"
        out.append(f"The finished model is {average}: {value}.")
    return " ".join(out)


def left_play(finding: Mapping[str, Any]) -> str:
    """Why something left play, in a sentence."""
    harm = f"{finding['harm']:.3f} ± {finding['se']:.3f}"
    name = TRAIT_WORDS.get(finding["factor"], finding["factor"])
    if finding["factor"] == ALONE:
        return f"Augmenting every sample costs {harm} in validation loss: half of them are left alone."
    if finding["harm"] < CERTAIN * finding["se"]:
        return f"Out of play: {name}, more likely harmful than not ({harm} in validation loss)."
    return f"Out of play: {name}, which cost {harm} in validation loss{WHY.get(finding['factor'], '')}."


def stays_in_play(result: TreeResult) -> list[str]:
    """What of the factors that stay clearly helps, and of which nothing can be told, by the last word on each."""
    last = {finding["factor"]: finding for finding in result.findings}
    stays = [finding for name, finding in last.items() if name not in result.out_of_play and name != ALONE]
    words: dict[bool, list[str]] = {True: [], False: []}
    for finding in stays:
        helps = finding["harm"] < -CERTAIN * finding["se"]
        gain = f" ({-finding['harm']:.3f} ± {finding['se']:.3f})" if helps else ""
        words[helps].append(TRAIT_WORDS.get(finding["factor"], finding["factor"]) + gain)
    out = [f"Clearly helps: {', '.join(words[True])}."] if words[True] else []
    return out + (
        [f"Stays, as neither harm nor help could be told: {', '.join(words[False])}."] if words[False] else []
    )


CERTAIN = 2.0
"""What is told as certain: effects of so many standard errors."""
WHY = {
    "Flip": " (your classes have a left and a right)",
    "VerticalFlip": " (your classes have an up and a down)",
    "QuarterTurn": " (your classes have an upright side)",
    "PadCrop": " (what stands at the border counts, or where a thing stands)",
    TONES: " (your classes differ in brightness or colour)",
    GEOMETRY: " (your classes differ in angle, size or place)",
}
"""What it says of the data when a factor does harm."""


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


def cost(run: Run, passes_of_one: int, *without: str) -> Cost:
    """What the run has spent so far; some units may be left out by prefix."""
    forward, backward, seconds, _ = run.cost(*without)
    scorings = sum(unit.value.get("round", "confirm") != "confirm" for unit in run.units("node/"))
    scorings += sum(1 for prefix in ("look/", "cool/") for _ in run.units(prefix))
    check = sum(unit.forward + unit.backward for unit in run.units("free/")) / passes_of_one
    total = (forward + backward) / passes_of_one
    return Cost(forward, backward, round(total, 3), round(seconds, 2), scorings, round(check, 3))
