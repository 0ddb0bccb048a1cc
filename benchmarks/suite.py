"""Finished models of searches beside free policies, one training each and for as long as a search takes.

    python benchmarks/suite.py prepare runs/sets --root $AUGTREE_DATA [--cifar FOLDER]
    python benchmarks/suite.py run runs/sets --out runs/suite --workers 8 [--minutes 9]      # again to go on
    python benchmarks/suite.py table --out runs/suite                                # writes results/suite.json
    python benchmarks/suite.py findings --out runs/suite                             # what the tests said

Nine free policies are trained once for each set; validation data chooses one. Then, for every seed: that choice and
default practice (flip, crop, TrivialAugment) trained for the budget of a search, a search, and a forest where a set
has groups. --parts adds the policies of the searches trained from scratch, averages of cool-downs of the choice, and
forests by the paper. A line of JSON for each training and search in OUT/SET.jsonl; all is chosen by validation data,
and test data is read for the table alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
import measure
from augtree.comparison import Longer, Soup
from augtree.data.groups import ALL
from augtree.search.play import UNGROUPED, Play
from augtree.tasks.trainer import Trainer
from augtree.training.state import State
from augtree.transforms import Chain, Flip, Identity, PadCrop, RandAugment, TrivialAugment

SUITE = (
    "esc50_spec",
    "fsdd_spec",
    "gtsrb",
    "ham10000",
    "magnetic_tile",
    "neu_steel",
    "omniglot",
    "quickdraw6",
    "usps",
)
MIXED = ("ham10000", "gtsrb", "neu_steel", "fsdd_spec")
"""Sets that become the groups of one task: some bear turns and flips, others do not."""
SIDE = 32


def prepare(folder: Path, root: Path, cifar: Path | None) -> None:
    """The sets as NAME.npz (x uint8 [N,H,W,C], y, split, g)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SUITE:
        found = np.load(root / "suite" / f"h_{name}.npz")
        keep(folder / f"{name}.npz", found["x"], found["y"], found["split"])
    for name in ("pacs", "fundus"):
        data = at.data.load(str(root / "images" / f"{name}.zip"), size=SIDE)
        keep_set(folder / f"{name}.npz", data)
    keep_set(folder / "digits.npz", at.data.load("digits").few(150, 900))
    keep_mixed(folder, root)
    if cifar is not None:
        keep_set(folder / "cifar10.npz", at.data.load("cifar10", root=str(cifar)).few(4000, 2000), test=5000)


def keep_set(path: Path, data: Any, test: int | None = None) -> None:
    """A set as the library has it, or with so many of its test samples."""
    split = np.array([("train", "val", "test")[i] for i in data.split])
    groups = np.array([data.group_names[i] for i in data.groups])
    kept, tested = np.ones(len(split), bool), np.flatnonzero(split == "test")
    kept[tested[np.random.default_rng(0).permutation(len(tested))[len(tested) if test is None else test :]]] = False
    pictures = data.samples.permute(0, 2, 3, 1).numpy()[kept]
    keep(path, pictures, data.labels.numpy()[kept], split[kept], groups[kept])


def keep_mixed(folder: Path, root: Path) -> None:
    """Four sets as the groups of one task, each with its own classes, as grey pictures of one size."""
    parts, before = [], 0
    for name in MIXED:
        found = np.load(root / "suite" / f"h_{name}.npz")
        grey = torch.from_numpy(found["x"].mean(-1, keepdims=True)).permute(0, 3, 1, 2).float()
        small = torch.nn.functional.interpolate(grey, (SIDE, SIDE), mode="bilinear", antialias=True)
        x = small.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
        parts.append((x, found["y"] + before, found["split"], np.full(len(x), name)))
        before += int(found["y"].max()) + 1
    keep(folder / "mixed.npz", *(np.concatenate(part) for part in zip(*parts, strict=True)))


def keep(path: Path, x: Any, y: Any, split: Any, groups: Any = None) -> None:
    np.savez_compressed(path, x=x, y=y, split=split, **({} if groups is None else {"g": groups}))


# ---- one set


PARTS = ("free_policies", "controls", "searches", "forests", "policies", "averages", "paper_forests")
"""What can be measured; by default the first four."""


class Set:
    """A set, what was measured on it, and what comes next."""

    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        self.name, self.options = path.stem, options
        self.file = options.out / f"{self.name}.jsonl"
        self.done = {(row["row"], row["seed"]): row for row in rows_of(self.file)}
        found = np.load(path)
        self.groups = found["g"] if "g" in found and len(set(found["g"].tolist())) > 1 else None
        about: dict[str, Any] = {"split": [str(s) for s in found["split"]], "name": self.name}
        self.data = at.data.from_arrays(found["x"], found["y"], **about)
        self.grouped = self.data
        if self.groups is not None:
            self.grouped = at.data.from_arrays(found["x"], found["y"], groups=[str(g) for g in self.groups], **about)
        model = "wrn-16-4" if self.name == "cifar10" else options.model
        self.task = at.tasks.Classification(model=model, steps=options.steps, precision=options.precision)
        self.trainer: Trainer = self.task.prepare(self.grouped)
        pad = min(found["x"].shape[1:3]) // 8
        crop = PadCrop(pad)
        self.free: dict[str, Any] = {
            "none": Identity(),
            "RandAugment 9": RandAugment(),
            "RandAugment 14": RandAugment(m=14),
            "TrivialAugment": TrivialAugment(),
            "flip, crop": Chain([Flip(), crop]),
            "flip, crop, RandAugment 9": Chain([Flip(), crop, RandAugment()]),
            "flip, crop, RandAugment 14": Chain([Flip(), crop, RandAugment(m=14)]),
            "flip, crop, TrivialAugment": Chain([Flip(), crop, TrivialAugment()]),
            "crop, RandAugment 14": Chain([crop, RandAugment(m=14)]),
        }

    @property
    def choice(self) -> str:
        """The free policy that validation data chooses."""
        found = self.done
        if self.options.choice_of:
            rows = rows_of(self.options.choice_of / self.file.name)
            found = {(row["row"], row["seed"]): row for row in rows}
        return max(self.free, key=lambda name: found[name, 0]["val"])

    def work(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """What there is to do, in order; later parts look at what the earlier ones found."""
        for part in self.options.parts:
            yield from getattr(self, part)()

    def free_policies(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """One training with each free policy."""
        for name, policy in self.free.items():
            yield name, 0, partial(self.once, policy)

    def controls(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """Free policies for the budget of a search."""
        default, best = self.free["flip, crop, TrivialAugment"], self.free[self.choice]
        for seed in self.options.seeds:
            for row, policy in (("default as long", default), ("choice as long", best)):
                yield row, seed, partial(self.controlled, Longer(self.options.budget, policy), policy)

    def averages(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """The average of cool-downs of the best free policy, for the budget of a search."""
        best = self.free[self.choice]
        for seed in self.options.seeds:
            soup = Soup(self.options.budget, best)
            yield "average of the choice", seed, partial(self.controlled, soup, best)

    def searches(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """Whole searches."""
        for seed in self.options.seeds:
            yield "search", seed, self.search

    def forests(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """Searches that know the groups, where there are any."""
        for seed in self.options.seeds if self.groups is not None else ():
            yield "forest", seed, self.forest

    def paper_forests(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """The paper's own way, where there are groups."""
        for seed in self.options.seeds if self.groups is not None else ():
            yield "forest by the paper", seed, partial(self.forest, method="paper")

    def policies(self) -> Iterator[tuple[str, int, Callable[[int], dict[str, Any]]]]:
        """The policies that the searches ended with, trained from scratch."""
        for seed in self.options.seeds:
            yield "mixture", seed, partial(self.again, form="mixture")
            yield "single", seed, partial(self.again, form="single")

    def once(self, policy: Any, seed: int) -> dict[str, Any]:
        """One training with a policy."""
        return self.judged(self.trainer.fit(policy, seed))

    def controlled(self, way: Longer | Soup, policy: Any, seed: int) -> dict[str, Any]:
        """A control of the search's cost."""
        return self.judged(way.fit(self.trainer, policy, seed))

    def judged(self, state: State) -> dict[str, Any]:
        """How a model does on validation and test data, and in the worst group."""
        out: dict[str, Any] = {}
        for split in ("val", "test"):
            out[split] = self.trainer.measures(state, self.grouped.indices(split))["accuracy"]
            if self.groups is not None:
                each = {g: self.grouped.indices(split, g) for g in self.grouped.group_names}
                out[f"{split} groups"] = {g: self.trainer.measures(state, r)["accuracy"] for g, r in each.items()}
        return out

    def search(self, seed: int) -> dict[str, Any]:
        """A search that knows no groups."""
        scorer = scorer_of(self.options)
        found = at.search_tree(self.data, self.task, seed=seed, budget=self.options.budget, scorer=scorer)
        assert found.state is not None
        return {
            **self.judged(found.state),
            "cost": found.cost.training_equivalents,
            "in_model": found.cost.model_equivalents,
            "out": {name: [f["harm"], f["se"]] for name, f in found.out_of_play.items()},
            "tree": str(found.tree),
            "members": len(found.members),
            "findings": [dict(f) for f in found.findings],
            "seen": list(found.cooled.values()),
        }

    def forest(self, seed: int, method: str = "shared") -> dict[str, Any]:
        """A forest."""
        found = at.search_forest(self.grouped, self.task, seed=seed, budget=self.options.budget, method=method)
        about = {"out": {g: list(names) for g, names in found.out_of_play.items()}, "cooled": dict(found.cooled)}
        cost = sum(value for name, value in found.cost.items() if name.endswith("equivalents"))
        figures: dict[str, Any] = {}
        for split, measures in found.measures.items():
            each = {group: float(measured["accuracy"]) for group, measured in measures.items()}
            figures |= {split: each.pop(ALL), f"{split} groups": each}
        return {
            **figures,
            "cost": cost,
            "weights": dict(found.weights),
            "notes": list(found.notes),
            **about,
        }

    def again(self, seed: int, form: str) -> dict[str, Any]:
        """A training from scratch with a policy that the search of this seed ended with."""
        play = Play(at.spaces.auto(self.data), frozenset(self.done["search", seed]["out"]))
        style = next((s for s in (RandAugment(), TrivialAugment()) if s in play.styles), play.styles[0])
        policy = play.mixture() if form == "mixture" else play.over_basics(style)
        return {**self.judged(self.trainer.fit(policy, seed)), "policy": str(policy)}

    def run(self, until: float) -> str:
        """All that is not done yet, as long as there is time."""
        for row, seed, work in self.work():
            if (row, seed) in self.done:
                continue
            if time.time() > until:
                return f"{self.name}: not done, next is {row}, seed {seed}"
            began, before = time.perf_counter(), self.trainer.passes.total
            found = {"set": self.name, "row": row, "seed": seed, **work(seed)}
            spent = (self.trainer.passes.total - before) / (self.trainer.total_steps * self.trainer.passes_per_step)
            found = {"cost": round(spent, 3), **found, "seconds": round(time.perf_counter() - began, 1)}
            self.done[row, seed] = found
            with self.file.open("a") as file:
                file.write(json.dumps(found) + "\n")
        return f"{self.name}: done ({', '.join(self.options.parts)}; seeds {self.options.seeds})"


def scorer_of(options: argparse.Namespace) -> at.search.Cooldown:
    """The scorer of the searches."""
    return at.search.Cooldown(looks=options.looks and tuple(options.looks), overfit=options.overfit)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, if it is there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def job(path: Path, options: argparse.Namespace, until: float, **chosen: Any) -> str:
    torch.set_num_threads(1)
    return Set(path, argparse.Namespace(**{**vars(options), **chosen})).run(until)


def run(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    until = time.time() + 60 * options.minutes
    (options.out / "about.json").write_text(json.dumps(about(options), indent=1))
    paths = [p for p in sorted(options.folder.glob("*.npz")) if not options.sets or p.stem in options.sets]
    paths.sort(key=lambda path: -path.stat().st_size)
    rest = [part for part in options.parts if part != "free_policies"]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        stages = (
            [[{"path": path, "parts": ["free_policies"]} for path in paths]]
            if "free_policies" in options.parts
            else []
        )
        stages.append([{"path": path, "parts": rest, "seeds": [seed]} for seed in options.seeds for path in paths])
        for stage in stages:
            jobs = [pool.submit(job, options=options, until=until, **chosen) for chosen in stage]
            for done in as_completed(jobs):
                print(done.result(), flush=True)


def about(options: argparse.Namespace) -> dict[str, Any]:
    """What the figures rest on."""
    names = ("model", "steps", "precision", "budget", "workers")
    chosen = {name: getattr(options, name) for name in names}
    chosen["scorer"] = scorer_of(options).spec()
    return {**chosen, "machine": measure.machine(1)}


# ---- the table


ROWS = (
    "choice as long",
    "default as long",
    "average of the choice",
    "mixture",
    "single",
    "forest",
    "forest by the paper",
)


def table(options: argparse.Namespace) -> None:
    """Means over seeds in percent, differences to the search paired by seed, and their average over the sets."""
    split, found = options.split, {}
    for path in sorted(options.out.glob("*.jsonl")):
        rows = {(row["row"], row["seed"]): row for row in rows_of(path)}
        found[path.stem] = summary_of(rows, split)
    found = {name: each for name, each in found.items() if "search" in each}
    names = [row for row in ("choice", *ROWS) if any(row in each for each in found.values())]
    lines, gaps = [], {name: [each[name]["behind"] for each in found.values() if name in each] for name in names}
    for name, each in found.items():
        cells = [f"{each[row]['mean']:.1f} ({each[row]['behind']:+.1f})" if row in each else "" for row in names]
        own = each["search"]
        lines.append(
            [
                name,
                f"{own['mean']:.1f} ± {own['spread']:.1f}",
                *cells,
                each["chosen"],
                ", ".join(own["out"]),
                f"{own['cost']:.2f}",
            ]
        )
    averages = {
        name: {"mean": statistics.mean(gap), "se": spread(gap) / len(gap) ** 0.5} for name, gap in gaps.items()
    }
    mean = ["average"] + [""] + [f"({a['mean']:+.2f} ± {a['se']:.2f})" for a in averages.values()] + ["", "", ""]
    head = ["set", "search", *names, "the choice", "out of play", "trainings"]
    print(measure.table(head, [*lines, mean]))
    content = {
        **json.loads((options.out / "about.json").read_text()),
        "split": split,
        "averages": averages,
        "sets": found,
    }
    if not options.dry:
        print(measure.write(options.name, content))


FACTORS = ("Flip", "VerticalFlip", "QuarterTurn")


def findings(options: argparse.Namespace) -> None:
    """Of each search: validation accuracy, and the share of its information that the model keeps, by flip or turn."""
    lines = []
    for path in sorted(options.out.glob("*.jsonl")):
        for row in (row for row in rows_of(path) if row["row"] == "search"):
            last = {found["factor"]: found for found in row["findings"]}
            cells = []
            for name in FACTORS:
                kept = f"{last[name]['kept'][UNGROUPED]:.2f}" if last[name]["kept"] else "?"
                cells.append(kept + (", out" if name in row["out"] else ""))
            lines.append([path.stem, str(row["seed"]), f"{100 * row['val']:.1f}", *cells])
    print(measure.table(["set", "seed", "val", *FACTORS], lines))


def summary_of(rows: dict[tuple[str, int], dict[str, Any]], split: str) -> dict[str, Any]:
    """One set: each row's mean, how far it is behind the search (paired), and in the worst group."""
    free = {row: found for (row, seed), found in rows.items() if row not in (*ROWS, "search")}
    choice = max(free, key=lambda row: free[row]["val"], default="")
    out: dict[str, Any] = {"chosen": choice, "free": {row: found[split] for row, found in free.items()}}
    searches = {seed: found for (row, seed), found in rows.items() if row == "search"}
    for name in ("search", *ROWS):
        mine = {seed: found for (row, seed), found in rows.items() if row == name and seed in searches}
        if not mine:
            continue
        gaps = [100 * (found[split] - searches[seed][split]) for seed, found in mine.items()]
        values = [100 * found[split] for found in mine.values()]
        out[name] = {
            "mean": statistics.mean(values),
            "spread": spread(values),
            "behind": statistics.mean(gaps),
            "behind_spread": spread(gaps),
            "seeds": len(mine),
            "cost": statistics.mean(f["cost"] for f in mine.values()),
        }
        if f"{split} groups" in next(iter(mine.values())):
            out[name]["worst group"] = statistics.mean(
                100 * min(f[f"{split} groups"].values()) for f in mine.values()
            )
    if searches:
        seen = [set(found["out"]) for found in searches.values()]
        out["search"]["out"] = {name: sum(name in each for each in seen) for name in sorted(set().union(*seen))}
        out["search"]["in_model"] = statistics.mean(found["in_model"] for found in searches.values())
    if searches and choice:
        value = 100 * free[choice][split]
        out["choice"] = {"mean": value, "behind": value - out["search"]["mean"], "seeds": 1}
    return out


def spread(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="what", required=True)
    first = does.add_parser("prepare")
    first.add_argument("folder", type=Path)
    first.add_argument("--root", type=Path, default=Path(os.environ.get("AUGTREE_DATA", "data")))
    first.add_argument("--cifar", type=Path, help="where cifar-10-batches-bin is")
    second = does.add_parser("run")
    second.add_argument("folder", type=Path)
    second.add_argument("--sets", nargs="+")
    second.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    second.add_argument("--workers", type=int, default=1)
    second.add_argument("--minutes", type=float, default=1e6)
    second.add_argument("--steps", type=int, default=1500)
    second.add_argument("--model", default="wrn-16-2")
    second.add_argument("--budget", type=float, default=2.0)
    second.add_argument("--looks", type=float, nargs="+", help="of the searches")
    second.add_argument("--overfit", type=float, help="of the searches; -1000 tests no overfitting")
    second.add_argument("--precision", default="auto", help="bfloat16: faster on a CPU that has it")
    second.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:4])
    second.add_argument("--choice-of", type=Path, help="OUT of another run, whose free policies choose")
    third = does.add_parser("table")
    third.add_argument("--split", choices=("val", "test"), default="test")
    third.add_argument("--name", default="suite")
    third.add_argument("--dry", action="store_true", help="write nothing")
    fourth = does.add_parser("findings")
    for each in (second, third, fourth):
        each.add_argument("--out", type=Path, default=Path("runs/suite"))
    options = parser.parse_args()
    if options.what == "prepare":
        prepare(options.folder, options.root, options.cifar)
    else:
        {"run": run, "table": table, "findings": findings}[options.what](options)


if __name__ == "__main__":
    main()
