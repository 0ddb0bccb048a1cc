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
2 threads". On the GPU augtree runs by Triton's kernels and, "eager", by torch's; "one operation a batch" is what
torchvision does when it gets the batch: less work, not the same. "Memory traffic" is the time to read and write the
batch once at the speed of a large copy on the same GPU; "GPU busy" is the part of augtree's time that the GPU works.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import augtree as at
import rivals
from augtree.keys import Key
from augtree.transforms import fused, images
from augtree.transforms.pictures import Shape
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


GPU_BATCHES = ((32, 512), (32, 8192), (96, 2048), (224, 1024))
"""Pixels and pictures a batch."""
OURS, THEIRS = "augtree", "torchvision v2, one operation a batch"


def in_kernels(kernels: str, policy: Any, batch: torch.Tensor) -> Any:
    """One call with $AUGTREE_KERNELS set: "auto" takes Triton's kernels, "eager" torch's."""
    os.environ["AUGTREE_KERNELS"] = kernels
    return policy(batch)


def busy(side: Side, calls: int = 5) -> float:
    """Milliseconds a call that the GPU itself works."""
    from torch.profiler import ProfilerActivity, profile

    side()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(calls):
            side()
        torch.cuda.synchronize()
    microseconds = sum(float(event.self_device_time_total) for event in found.key_averages())
    return round(microseconds / calls / 1e3, 4)


def on_gpu(repeats: int) -> tuple[list[dict[str, Any]], float]:
    prepare()
    if not fused.installed():
        raise SystemExit("Triton is not installed: there is nothing to compare")
    speed = bandwidth()
    rows = []
    for size, count in GPU_BATCHES:
        batch = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, device="cuda")
        for work, policy in {"mixed": at.transforms.TrivialAugment(), "tree": full_tree()}.items():
            done = [in_kernels(name, partial(policy, seed=0), batch) for name in ("auto", "eager")]
            if not torch.equal(*done):
                raise SystemExit(f"{work} at {size} px: Triton's bytes are not those of torch's kernels")
            sides = gpu_sides(policy, batch)
            found = {name: summary(s) for name, s in side_by_side(sides, repeats, cuda=True).items()}
            least = 1e3 * 2 * batch.numel() / speed
            rows.append(
                {"work": work, "pixels": size, "pictures": count, "times": found, "gpu_busy_ms": busy(sides[OURS])}
                | {"ms_of_memory_traffic": round(least, 4)}
                | {"pictures_a_second": {n: round(1e3 * count / t["ms"]) for n, t in found.items()}}
                | {"times_memory": {n: round(t["ms"] / least, 1) for n, t in found.items()}}
            )
            print(f"{work}, {count} x {size} px done", flush=True)
    return rows, speed


def gpu_sides(policy: Any, batch: torch.Tensor) -> dict[str, Side]:
    sides: dict[str, Side] = {
        OURS: partial(in_kernels, "auto", policy, batch),
        f"{OURS}, eager": partial(in_kernels, "eager", policy, batch),
        "draws on the CPU alone": partial(drawn, policy, batch.shape),
    }
    if available("torchvision") and not isinstance(policy, at.Tree):
        from torchvision.transforms import v2

        sides[THEIRS] = partial(v2.TrivialAugmentWide(fill=rivals.GREY), batch)
    return sides


def drawn(policy: Any, shape: torch.Size) -> object:
    """What the CPU does before a call's pictures are touched, where it draws: with torch's kernels."""
    return policy.draw(Key.of(0, np.arange(shape[0])), Shape(*shape))


def gpu_table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds and, in brackets, the multiple of the time of reading and writing the batch once."""
    names = list(rows[0]["times"])
    header = ["work", "batch", "memory traffic ms", "GPU busy ms"]
    body = [
        [r["work"], f"{r['pictures']} x {r['pixels']} px", f"{r['ms_of_memory_traffic']:.3f}"]
        + [f"{r['gpu_busy_ms']:.3f} ({r['gpu_busy_ms'] / r['ms_of_memory_traffic']:.1f}x)"]
        + [f"{r['times'][n]['ms']:.3f} ({r['times_memory'][n]:.1f}x)" if n in r["times"] else "" for n in names]
        for r in rows
    ]
    return table([*header, *(f"{name} ms" for name in names)], body)


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
        print(gpu_table(rows))
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
