"""Mixed batches of pictures (each its own operation and magnitude) and whole trees, against other libraries.

    make bench                                      # CPU: Pillow, torchvision v2, kornia, Albumentations
    python benchmarks/image_speed.py --device cuda  # GPU

What is timed:
- mixed: TrivialAugment's choice of 14 operations and 31 magnitudes, drawn for every picture;
- tree: a full tree of depth 4 (15 nodes, the sixteen operations but Cutout and SamplePairing), p = 0.5 everywhere.
augtree gets and returns a uint8 tensor. "Pillow" gets and returns Pillow images; "Pillow, arrays" also pays for the
way from and to an array. torchvision v2 gets uint8 tensors, kornia float tensors, one picture at a time, since both
draw one operation a call (torchvision's "mixed" is its own TrivialAugmentWide; the rest is their functions, chosen in
Python). Albumentations gets and returns uint8 arrays [H,W,C]; its transforms are called without a pipeline around
them, which is faster, and draw magnitudes of the same ranges themselves. All sides have one thread, but "augtree,
2 threads". On the GPU, "one operation a batch" is what torchvision does when it gets the batch: less work, not the
same.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
import rivals
from augtree.transforms import images
from measure import RESULTS, machine, side_by_side, summary, table, write
from torchvision_beside_cpu_torch import prepare

SIZES = {32: 256, 96: 128, 224: 32, 512: 16}
"""Pixels and pictures a batch, on the CPU."""


def full_tree() -> at.Tree:
    kinds = [kind for kind in images.OPERATIONS if kind.__name__ not in ("Cutout", "SamplePairing")]
    tree = at.Tree()
    for index in range(1, 16):
        tree = tree.with_node(index, kinds[(5 * index) % len(kinds)](0.6), p=0.5)
    return tree


def available(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


Side = Callable[[], object]


def on_threads(threads: int, policy: Any, batch: torch.Tensor) -> torch.Tensor:
    """The batch augmented while torch may use this many threads."""
    torch.set_num_threads(threads)
    done: torch.Tensor = policy(batch)
    torch.set_num_threads(1)
    return done


def cpu_sides(batch: torch.Tensor, one: Callable[[Any, Any], Any], policy: Any) -> dict[str, Side]:
    """The libraries at the same work; `one(operate, picture)` does one picture."""
    from PIL import Image

    arrays = [picture.permute(1, 2, 0).contiguous().numpy() for picture in batch]
    pictures = [Image.fromarray(array) for array in arrays]
    singles, floats = list(batch), list((batch.float() / 255).split(1))

    def by_array(operate: Any) -> Any:
        done = [np.asarray(one(operate, Image.fromarray(array))) for array in arrays]
        return torch.from_numpy(np.stack(done)).permute(0, 3, 1, 2).contiguous()

    sides: dict[str, Side] = {
        "augtree": partial(policy, batch),
        "augtree, 2 threads": partial(on_threads, 2, policy, batch),
        "Pillow": lambda: [one(rivals.pillow, picture) for picture in pictures],
        "Pillow, arrays": partial(by_array, rivals.pillow),
    }
    if available("torchvision"):
        from torchvision.transforms import v2

        own = v2.TrivialAugmentWide(fill=rivals.GREY)
        each = own if isinstance(policy, at.transforms.TrivialAugment) else partial(one, rivals.torchvision)
        sides["torchvision v2"] = lambda: torch.stack([each(picture) for picture in singles])
    if available("kornia"):
        sides["kornia"] = lambda: torch.cat([one(rivals.kornia, picture) for picture in floats])
    if available("albumentations"):
        operate = rivals.albumentations(wide=isinstance(policy, at.transforms.TrivialAugment))
        sides["Albumentations"] = lambda: [one(operate, array) for array in arrays]
    return sides


def on_cpu(repeats: int) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    rows = []
    tree = full_tree()
    for size, count in SIZES.items():
        batch = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8)
        works: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
            "mixed": (partial(_mixed, size=size), at.transforms.TrivialAugment()),
            "tree": (partial(_tree, tree=tree, size=size), tree),
        }
        for work, (one, policy) in works.items():
            times = side_by_side(cpu_sides(batch, one, policy), repeats)
            rows.append(row(work, size, count, times))
            print(f"{work} at {size} px done", flush=True)
    return rows


def _mixed(operate: Any, picture: Any, size: int) -> Any:
    return rivals.trivial_augment(operate, picture, size)


def _tree(operate: Any, picture: Any, tree: at.Tree, size: int) -> Any:
    return rivals.walk(tree, operate, picture, size)


def row(work: str, size: int, count: int, times: dict[str, list[float]]) -> dict[str, Any]:
    found = {name: summary(seconds) for name, seconds in times.items()}
    ratios = {name: round(found[name]["ms"] / found["augtree"]["ms"], 2) for name in found if name != "augtree"}
    return {"work": work, "pixels": size, "pictures": count, "times": found, "ratios": ratios}


def bandwidth() -> float:
    """Bytes a second that a copy on the device reads and writes."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    seconds = side_by_side({"copy": lambda: target.copy_(source)}, 10, cuda=True)["copy"]
    return 2 * source.numel() / sorted(seconds)[5]


def on_gpu(repeats: int) -> tuple[list[dict[str, Any]], float]:
    prepare()
    speed = bandwidth()
    rows = []
    for size, count in ((32, 512), (32, 8192), (96, 2048), (224, 1024)):
        batch = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, device="cuda")
        sides: dict[str, Side] = {
            "augtree": partial(at.transforms.TrivialAugment(), batch),
            "augtree, tree": partial(full_tree(), batch),
        }
        if available("torchvision"):
            from torchvision.transforms import v2

            theirs = v2.TrivialAugmentWide(fill=rivals.GREY)
            few = list(batch[:64])
            sides["torchvision v2, one operation a batch"] = partial(theirs, batch)
            sides["torchvision v2, 64 pictures one by one"] = lambda theirs=theirs, few=few: [theirs(p) for p in few]  # type: ignore[misc]
        found = {name: summary(s) for name, s in side_by_side(sides, repeats, cuda=True).items()}
        least = 1e3 * 2 * batch.numel() / speed
        rates = {name: round(1e3 * (64 if "one by one" in name else count) / t["ms"]) for name, t in found.items()}
        rows.append(
            {"pixels": size, "pictures": count, "times": found, "pictures_a_second": rates}
            | {"ms_of_memory_traffic": round(least, 4), "times_memory": round(found["augtree"]["ms"] / least, 1)}
        )
    return rows, speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    if options.device == "cuda":
        rows, speed = on_gpu(options.repeats)
        names = list(rows[0]["times"])
        body = [
            [
                f"{r['pictures']} x {r['pixels']} px",
                *(f"{r['pictures_a_second'][n]:,}" for n in names),
                f"{r['times_memory']}x",
            ]
            for r in rows
        ]
        print(table(["batch", *(f"{name}, pictures/s" for name in names), "augtree over memory traffic alone"], body))
        content: dict[str, Any] = {"machine": machine(1), "copy_gb_a_second": round(speed / 1e9), "rows": rows}
        print(f"\nwritten to {write('image_speed_gpu', content, options.out)}")
        return
    prepare()
    rows = on_cpu(options.repeats)
    names = [name for name in rows[0]["times"] if name != "augtree"]
    body = [
        [r["work"], f"{r['pictures']} x {r['pixels']} px", f"{r['times']['augtree']['ms']:.2f}"]
        + [f"{r['times'][n]['ms']:.1f} ({r['ratios'][n]:.2f}x)" for n in names]
        for r in rows
    ]
    print(table(["work", "batch", "augtree ms", *(f"{name} ms" for name in names)], body))
    versions = {
        name: __import__(name).__version__
        for name in ("PIL", "torchvision", "kornia", "albumentations", "cv2")
        if available(name)
    }
    content = {"machine": machine(1), "versions": versions, "rows": rows}
    print(f"\nwritten to {write('image_speed', content, options.out)}")


if __name__ == "__main__":
    main()
