"""Whether cool-downs from one trunk tell what whole trainings would, in contrastive learning on graphs.

Part of contrastive_graphs.py, which has the command. The encoder, its optimizer and its length are those of the
protocol `graphcl` (NCI1: half the length), the schedule is the library's own. Each seed has a split of its own, the
same for all of its rows: half of the graphs to fit the judge to, a quarter to validate on, a quarter to test on;
encoders are trained on all of them, without labels. The judge is ridge regression: its validation loss chooses.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.data.splits import SPLITS
from augtree.evaluation.protocols import PROTOCOLS
from augtree.policies.codec import Reader, to_json
from augtree.search.play import Play
from augtree.search.scorers.cooldown import BUDGET
from augtree.tasks.trainer import Trainer
from augtree.training.schedules import cooldown_rates, rates
from augtree.training.state import State, seed_of
from augtree.transforms import Identity
from augtree.transforms.graphs import FOUR, MaskNodes
from augtree.transforms.traits import EVERY_SAMPLE
from measure import Array, machine, spearman, table, write

PROTOCOL = PROTOCOLS["graphcl"]
RATIOS = (0.1, 0.3, 0.5)
EPOCHS = {"NCI1": 10}
"""Instead of the protocol's 20, where there are four times as many graphs as in the other sets: 321 steps."""
TRUNK = 0.8
"""How long trunks are, in trainings."""
WAYS = {
    "whole": "a whole training",
    "quarter": "a quarter of a training",
    "cool 0.2": "a cool-down of 0.2 from a mixture trunk",
    "cool 0.5": "a cool-down of 0.5 from a mixture trunk",
    "plain 0.2": "a cool-down of 0.2 from an unaugmented trunk",
}
"""What a candidate is judged after."""
LEFT = "mixture without "
SEARCH = ("search, finished model", "search")
RANKS = "rank correlation with accuracy"
FOUND = ("search, policy", "search, its mixture")
ROWS = (
    *("none", "GraphCL", "mixture", *FOUND, "search, finished model"),
    *("mixture, for as long", "GraphCL, for as long"),
)


def split_anew(data: Dataset, seed: int) -> Dataset:
    """Half of each label to train on, a quarter each to validate and to test on."""
    split, rng = np.zeros(len(data), data.split.dtype), np.random.default_rng(seed)
    for label in np.unique(data.labels.numpy()):
        rows = rng.permutation(np.flatnonzero(data.labels.numpy() == label))
        for name, part in zip(("train", "train", "val", "test"), np.array_split(rows, 4), strict=True):
            split[part] = SPLITS.index(name)
    return replace(data, name=f"{data.name}, split {seed}", split=split, source=None)


class Replicate:
    """A set with one seed: what was measured, and what comes next."""

    def __init__(self, name: str, seed: int, options: argparse.Namespace) -> None:
        self.name, self.seed, self.budget = name, seed, options.budget
        self.file = options.out / f"{name}-{seed}.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.done = {(row["row"], row["way"]): row for row in map(json.loads, lines)}
        self.data = split_anew(at.data.load(name, options.root), seed)
        epochs = options.epochs or EPOCHS.get(name)
        more = {"epochs": epochs} if epochs else {}
        self.task = PROTOCOL.task(samples="all", judge="ridge", schedule="constant-linear", **more)
        self.trainer: Trainer = self.task.prepare(self.data)
        self.space = at.spaces.auto(self.data)
        self.play, self.four = Play(self.space), find_for(self.data, "graphcl")
        self.trunks: dict[str, State] = {}

    @property
    def candidates(self) -> dict[str, Any]:
        """What is ranked: nothing, each operation at three ratios, GraphCL's four at random."""
        featured = any(isinstance(style, MaskNodes) for style in self.space)
        kinds = [kind for kind in FOUR if featured or kind is not MaskNodes]
        found = {str(one): one for one in (kind(ratio) for kind in kinds for ratio in RATIOS)}
        return {"none": Identity(), "GraphCL": self.four, **found}

    def work(self) -> Iterator[tuple[str, str, Callable[[], State | tuple[State, dict[str, Any]]]]]:
        """All rows, in order."""
        mixture, plain = self.play.mixture(), Identity()
        for row, policy in self.candidates.items():
            yield row, "whole", partial(self.fit, policy)
            yield row, "quarter", partial(self.fit, policy, 0.25)
            yield row, "cool 0.2", partial(self.cooled, mixture, policy, 0.2)
            yield row, "cool 0.5", partial(self.cooled, mixture, policy, 0.5)
            yield row, "plain 0.2", partial(self.cooled, plain, policy, 0.2)
        yield "mixture", "whole", partial(self.fit, mixture)
        for factor in self.play.factors:
            if factor != EVERY_SAMPLE:
                left = self.play.without([factor]).mixture()
                yield LEFT + factor, "whole", partial(self.fit, left)
        yield (*SEARCH, self.searched)
        about = self.done[SEARCH]
        for row, text in zip(FOUND, (about["tree"], about["mixture"]), strict=True):
            yield row, "whole", partial(self.fit, Reader(self.file, ()).policy(text))
        yield "mixture, for as long", "longer", partial(self.fit, mixture, about["cost"])
        yield "GraphCL, for as long", "longer", partial(self.fit, self.four, about["cost"])

    def fit(self, policy: Any, length: float = 1.0) -> State:
        """A training from the start."""
        return self.trainer.fit(policy, self.seed, round(length * self.trainer.total_steps))

    def cooled(self, mixture: Any, policy: Any, length: float) -> State:
        """A cool-down with a policy, from a trunk on a mixture."""
        one, rate = self.trainer.total_steps, self.task.rate
        if str(mixture) not in self.trunks:
            rise = rates("constant-linear", one, warmup=self.task.warmup, decay=0)
            level = [rate * share for share in rise[: round(TRUNK * one)]]
            trunk = self.trainer.train(self.trainer.fresh(self.seed), mixture, level, seed_of(self.seed, "trunk"))
            self.trunks[str(mixture)] = trunk
        down = [rate * share for share in cooldown_rates(round(length * one))]
        return self.trainer.train(self.trunks[str(mixture)], policy, down, seed_of(self.seed, "cool"))

    def searched(self) -> tuple[State, dict[str, Any]]:
        """A search by cool-downs."""
        found = at.search_tree(self.data, self.task, self.space, seed=self.seed, budget=self.budget)
        assert found.mixture is not None
        assert found.state is not None
        return found.state, {
            "tree": to_json(found.tree), "mixture": to_json(found.mixture), "members": len(found.members),
            "out": list(found.out_of_play), "cost": found.cost.training_equivalents,
            "findings": [dict(finding) for finding in found.findings], "verdict": found.verdict(),
        }  # fmt: skip

    def judged(self, state: State) -> dict[str, float]:
        """The judge's loss on validation data, and its accuracy there and on test data; a linear classifier's too."""
        val, test = self.data.indices("val"), self.data.indices("test")
        out = {"loss": float(self.trainer.calibrated_losses(state, val).mean())}
        for split, rows in (("val", val), ("test", test)):
            right = self.trainer.logits(state, rows).argmax(1).cpu().numpy() == self.data.labels.numpy()[rows]
            out |= {split: float(right.mean()), f"linear {split}": self.trainer.measures(state, rows)["accuracy"]}
        return out

    def run(self) -> str:
        """All that is not done yet."""
        began = time.perf_counter()
        for row, way, work in self.work():
            if (row, way) in self.done:
                continue
            begin = time.perf_counter()
            made = work()
            state, about = made if isinstance(made, tuple) else (made, {})
            found = {"row": row, "way": way, **self.judged(state), **about}
            self.done[row, way] = {**found, "seconds": round(time.perf_counter() - begin, 2)}
            with self.file.open("a") as file:
                file.write(json.dumps(self.done[row, way]) + "\n")
        return f"{self.name}, seed {self.seed}: {time.perf_counter() - began:.0f} s"


def job(name: str, seed: int, options: argparse.Namespace) -> str:
    """One set with one seed, in a process of its own."""
    torch.set_num_threads(1)
    return Replicate(name, seed, options).run()


def cooldowns(options: argparse.Namespace) -> None:
    """Measure what is not there yet, and make the tables of all that is."""
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = [(name, seed) for seed in options.each for name in options.sets]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(job, *each, options) for each in jobs]):
            print(done.result(), flush=True)
    content: dict[str, Any] = {"machine": machine(1), "budget": options.budget or BUDGET, "sets": {}}
    for name in options.sets:
        found = [rows_of(path) for path in sorted(options.out.glob(f"{name}-*.jsonl"))]
        content["sets"][name] = {"epochs": options.epochs or EPOCHS.get(name, PROTOCOL.settings["epochs"])}
        content["sets"][name] |= summary_of(found)
    show(content["sets"])
    print(f"written to {write(options.name, content)}")


# ---- the tables

Rows = dict[tuple[str, str], dict[str, Any]]


def rows_of(path: Path) -> Rows:
    """What one replicate has measured."""
    return {(row["row"], row["way"]): row for row in map(json.loads, path.read_text().splitlines())}


def summary_of(seeds: Sequence[Rows]) -> dict[str, Any]:
    """Of one set, over its seeds."""
    names = [row for row, way in seeds[0] if way == "quarter"]
    searches = [rows[SEARCH] for rows in seeds]
    parts = ("out", "cost", "members", "verdict")
    return {
        "seeds": len(seeds),
        "candidates": {name: whole_of(seeds, name) for name in names},
        "ways": {way: agreement(seeds, names, way) for way in WAYS},
        "rows": {row: policy_of(seeds, row) for row in ROWS},
        "factors": {factor: factor_of(seeds, factor) for factor in factors_of(seeds[0])},
        "searches": [{part: found[part] for part in parts} for found in searches],
    }


def whole_of(seeds: Sequence[Rows], name: str) -> dict[str, Any]:
    """A candidate: its whole trainings, also beside the mixture's, and the judge's loss after each way."""
    test = [100 * rows[name, "whole"]["test"] for rows in seeds]
    losses = {way: spread(rows[name, way]["loss"] for rows in seeds) for way in WAYS}
    return {"test": spread(test), "over the mixture": spread(over_mixture(seeds, test)), **losses}


def agreement(seeds: Sequence[Rows], names: Sequence[str], way: str) -> dict[str, Any]:
    """How the judge's losses after one way rank candidates, beside whole trainings of the other seeds; its choices.

    The truth is the accuracy on validation and test data, and the judge's loss, after whole trainings with other
    seeds, on other splits, so that a whole training of the same seed is judged by it as all other ways are.
    """
    loss = values_of(seeds, names, way, "loss")
    right = (values_of(seeds, names, "whole", "val") + values_of(seeds, names, "whole", "test")) / 2
    whole, test = values_of(seeds, names, "whole", "loss"), values_of(seeds, names, "whole", "test")
    accuracy, losses = [], []
    for seed in range(len(seeds)):
        others = [other for other in range(len(seeds)) if other != seed]
        if others:
            accuracy.append(spearman(-loss[seed], right[others].mean(0)))
            losses.append(spearman(loss[seed], whole[others].mean(0)))
    first = [int(each.argmin()) for each in loss]
    chosen = [100 * test[seed, one] for seed, one in enumerate(first)]
    return {
        "rank correlation with accuracy": spread(accuracy),
        "rank correlation with loss": spread(losses),
        "rank correlation of means with accuracy": spearman(-loss.mean(0), right.mean(0)),
        "choices": [names[one] for one in first],
        "test": spread(chosen),
        "over the mixture": spread(over_mixture(seeds, chosen)),
    }


def values_of(seeds: Sequence[Rows], names: Sequence[str], way: str, what: str) -> Array:
    """A row for each seed, a column for each candidate."""
    return np.array([[rows[name, way][what] for name in names] for rows in seeds])


def over_mixture(seeds: Sequence[Rows], test: Sequence[float]) -> list[float]:
    """By how many points each is above a whole training on the mixture, with the same seed."""
    return [value - 100 * rows["mixture", "whole"]["test"] for value, rows in zip(test, seeds, strict=True)]


def policy_of(seeds: Sequence[Rows], row: str) -> dict[str, Any]:
    """A row of the table of policies."""
    found = [next(one for (name, _), one in rows.items() if name == row) for rows in seeds]
    test = [100 * one["test"] for one in found]
    linear = [100 * one["linear test"] for one in found]
    return {"test": spread(test), "over the mixture": spread(over_mixture(seeds, test)), "linear": spread(linear)}


def factors_of(rows: Rows) -> list[str]:
    """What could leave play."""
    return [row.removeprefix(LEFT) for row, _ in rows if row.startswith(LEFT)]


def factor_of(seeds: Sequence[Rows], factor: str) -> dict[str, Any]:
    """What leaving a factor out does, as the search's looks say and as whole trainings do."""
    pairs = [(rows["mixture", "whole"], rows[LEFT + factor, "whole"]) for rows in seeds]
    looks = [[f for f in rows[SEARCH]["findings"] if f["factor"] == factor] for rows in seeds]
    return {
        "harm, whole trainings": spread(one["loss"] - other["loss"] for one, other in pairs),
        "test gained without it": spread(100 * (other["test"] - one["test"]) for one, other in pairs),
        "harm, looks": spread(found[-1]["harm"] for found in looks if found),
        "each last look": [[found[-1]["harm"], found[-1]["se"]] for found in looks if found],
    }


def spread(values: Iterable[float]) -> list[float | None]:
    """Mean and standard deviation, without rank correlations of what is all equal."""
    found = [float(value) for value in values if np.isfinite(value)]
    if not found:
        return [None, None]
    return [statistics.mean(found), statistics.stdev(found) if len(found) > 1 else None]


def told(found: Sequence[float | None], form: str = ".1f") -> str:
    """Such a pair in a table."""
    mean, sd = found
    return "" if mean is None else f"{mean:{form}}" + ("" if sd is None else f" ± {sd:{form.lstrip('+')}}")


def show(sets: dict[str, Any]) -> None:
    """All tables, in Markdown."""
    over = "over the mixture"
    rows = dict.fromkeys(row for each in sets.values() for row in each["candidates"])
    body = [[row, *[cell(each["candidates"], row, over, "+.1f") for each in sets.values()]] for row in rows]
    print(table(["a whole training with", *[f"{name}: test accuracy over the mixture's" for name in sets]], body))
    ways = [(words, [each["ways"][way] for each in sets.values()]) for way, words in WAYS.items()]
    body = [
        [
            words,
            *[f"{told(each[RANKS], '+.2f')}; {told(each['test'])} ({told(each[over], '+.1f')})" for each in found],
        ]
        for words, found in ways
    ]
    print(table(["judged after", *[f"{name}: rank correlation; test accuracy of the choice" for name in sets]], body))
    body = []
    for row in ROWS:
        found = [(cell(each["rows"], row, "test"), cell(each["rows"], row, over, "+.1f")) for each in sets.values()]
        body.append([row, *[f"{value} ({gap})" for value, gap in found]])
    print(table(["policy", *[f"{name}: test accuracy (over the mixture's)" for name in sets]], body))
    for name, about in sets.items():
        forms = {"harm, looks": "+.3f", "harm, whole trainings": "+.3f", "test gained without it": "+.1f"}
        body = [[factor, *[told(each[key], form) for key, form in forms.items()]]
                for factor, each in about["factors"].items()]  # fmt: skip
        print(table([name, *forms], body))
        print(*[f"out of play: {found['out']}" for found in about["searches"]], sep="\n")


def cell(rows: dict[str, Any], row: str, what: str, form: str = ".1f") -> str:
    """What a table has of a row, if there is such a row."""
    return told(rows[row][what], form) if row in rows else ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own."""
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/cooldowns"))
    parser.add_argument("--each", type=int, nargs="+", default=[0, 1, 2], help="these seeds")
    parser.add_argument("--epochs", type=float, help="instead of the protocol's")
    parser.add_argument("--budget", type=float, help="of a search, in training equivalents")
    parser.add_argument("--workers", type=int, default=1, help="sets and seeds at once")
    parser.add_argument("--name", default="contrastive_cooldowns", help="of the file of results")
