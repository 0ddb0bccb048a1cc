"""Targeted augmentation where backgrounds mislead: digits before the photographs of cameras, as in iWildCam.

    python benchmarks/targeted.py prepare runs/cameras --root $AUGTREE_DATA   # a folder of pictures, masks, index.csv
    python benchmarks/targeted.py run runs/cameras --out runs/targeted        # again to go on
    python benchmarks/targeted.py table --out runs/targeted                   # writes results/targeted.json

A camera is one photograph of a house (PACS); its pictures are parts of it, a few pixels apart and of other
brightness. In front stands a handwritten digit (USPS), whose mask is its ink. Each training camera has a digit of its
own: a digit is before its own camera with probability 0.9, and otherwise before any of the ten. Test pictures are of
ten other cameras, any digit before any of them, so what a model has learned of backgrounds is of no use there.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import augtree as at
import measure
from augtree.baselines.targeted import Targeted
from augtree.runs.events import RowTrained

SIDE, CAMERAS, OWN, INK = 24, 10, 0.9, 96
MOVED, PHOTO = 6, 48
"""The most pixels by which a camera moves, and the side of its photograph."""
METHODS: dict[str, Any] = {
    "none": None,
    "targeted": Targeted(),
    "targeted, p = 0.9": Targeted(p=0.9),
    "targeted, all groups, p = 0.9": Targeted(p=0.9, partners="all"),
    "lisa": "lisa",
    "group-dro": "group-dro",
    "randaugment": "randaugment",
}


def prepare(options: argparse.Namespace) -> None:
    """A folder as a user would have it."""
    rng = np.random.default_rng(0)
    digits = np.load(options.root / "suite" / "h_usps.npz")
    photos = photographs(options.root)
    for part in ("pictures", "masks"):
        (options.folder / part).mkdir(parents=True, exist_ok=True)
    rows = [("path", "label", "group", "split", "mask")]
    for i, (ink, label, split) in enumerate(zip(digits["x"][..., 0], digits["y"], digits["split"], strict=True)):
        if split == "test":
            camera = CAMERAS + int(rng.integers(CAMERAS))
        else:
            camera = int(label) if rng.random() < OWN else int(rng.integers(CAMERAS))
        picture, mask = before(photos[camera], ink, rng)
        names = [f"{part}/{i:04d}.png" for part in ("pictures", "masks")]
        Image.fromarray(picture).save(options.folder / names[0])
        Image.fromarray(mask).save(options.folder / names[1])
        rows.append((names[0], str(label), f"camera {camera:02d}", str(split), names[1]))
    with (options.folder / "index.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def photographs(root: Path) -> list[Any]:
    """The first photographs of houses, one a camera."""
    data = at.data.load(str(root / "images" / "pacs.zip"), size=PHOTO)
    houses = [i for i, name in enumerate(data.files) if name.startswith("photo/house/")]
    return [data.samples[i].permute(1, 2, 0).numpy() for i in houses[: 2 * CAMERAS]]


def before(photo: Any, ink: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A digit somewhere before a part of a photograph, and its mask."""
    middle = (PHOTO - SIDE) // 2
    top, left = middle + rng.integers(-MOVED, MOVED + 1, 2)
    picture = photo[top : top + SIDE, left : left + SIDE] * rng.uniform(0.7, 1.0)
    mask = np.zeros((SIDE, SIDE), bool)
    y, x = rng.integers(0, SIDE - len(ink) + 1, 2)
    mask[y : y + len(ink), x : x + len(ink)] = ink > INK
    picture[mask] = ink[ink > INK, None]
    return picture.round().astype(np.uint8), mask


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    data = at.data.load(options.folder)
    task = at.tasks.Classification(model="cnn", steps=options.steps, batch_size=64, metric="accuracy")

    def told(event: object) -> None:
        if isinstance(event, RowTrained):
            print(*event.describe(), flush=True)

    begin = time.perf_counter()
    at.compare(data, task, METHODS, seeds=options.seeds, out=options.out, watch=told)
    print(f"{time.perf_counter() - begin:.0f} s")
    about = {"steps": options.steps, "batch_size": 64, "model": "cnn", "counts": data.counts}
    (options.out / "about.json").write_text(json.dumps({**about, "machine": measure.machine(1)}, indent=1))


def table(options: argparse.Namespace) -> None:
    """Test accuracy, on average and of the worst camera, and that on validation pictures, in percent."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads((options.out / "comparison.json").read_text())["rows"]:
        rows.setdefault(row["policy"], []).append(row)
    found = {name: {key: spread([r[key] for r in each]) for key in FIGURES} for name, each in rows.items()}
    lines = [[name, *(f"{m:.1f} ± {s:.1f}" for m, s in each.values())] for name, each in found.items()]
    print(measure.table(["method", *FIGURES.values()], lines))
    about = json.loads((options.out / "about.json").read_text())
    seeds = len(next(iter(rows.values())))
    print(measure.write("targeted", {"about": {**about, "seeds": seeds}, "percent": found}))


FIGURES = {"test": "other cameras", "worst_group": "the worst of them", "val": "the training cameras"}


def spread(values: list[float]) -> tuple[float, float]:
    percent = [100 * value for value in values]
    return statistics.mean(percent), statistics.stdev(percent) if len(percent) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_subparsers(dest="what", required=True)
    first = does.add_parser("prepare")
    first.add_argument("folder", type=Path)
    first.add_argument("--root", type=Path, required=True)
    second = does.add_parser("run")
    second.add_argument("folder", type=Path)
    second.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    second.add_argument("--steps", type=int, default=400)
    third = does.add_parser("table")
    for each in (second, third):
        each.add_argument("--out", type=Path, default=Path("runs/targeted"))
    options = parser.parse_args()
    {"prepare": prepare, "run": run, "table": table}[options.what](options)


if __name__ == "__main__":
    main()
