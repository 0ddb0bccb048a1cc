"""What `augtree demo` shows: a hand-written tree on the digits that ship with scikit-learn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.errors import need
from augtree.files import write_atomically
from augtree.keys import Key
from augtree.policies import Tree
from augtree.report import sheet
from augtree.transforms import spaces


def digits() -> tuple[Tensor, Tensor]:
    """1,797 digits as uint8 [1,8,8], and their labels."""
    found = need("sklearn.datasets", "cli").load_digits()
    pictures = np.rint(found.images * (255 / 16)).astype(np.uint8)
    return torch.from_numpy(pictures)[:, None], torch.from_numpy(found.target)


def tree() -> Tree:
    """Digits lean, wander and fade; they are never flipped."""
    space = spaces.images(fill=0)
    return (
        Tree()
        .with_node(1, space["Rotate", 0.6], p=0.8)
        .with_node(2, space["ShearX", 0.8], p=0.6)
        .with_node(3, space["TranslateY", 0.4])
        .with_node(4, space["TranslateX", 0.4], p=0.5)
        .with_node(6, space["Brightness", 0.6], p=0.7)
    )


def run(out: Path, seed: int) -> dict[str, Any]:
    """Write the tree, its picture and a sheet; count how often each path is taken."""
    policy = tree()
    pictures, labels = digits()
    chosen = [int((labels == digit).nonzero()[seed % 100]) for digit in range(10)]
    rows = sheet.augmented(policy, [(f"digit {labels[i]}", pictures[i]) for i in chosen], copies=8, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    policy.save(out / "tree.json")
    write_atomically(out / "tree.svg", policy.to_svg().encode())
    write_atomically(out / "sheet.png", sheet.drawn("A hand-written tree on ten digits", rows))
    return {
        "tree": str(out / "tree.json"),
        "picture": str(out / "tree.svg"),
        "sheet": str(out / "sheet.png"),
        "paths": path_shares(policy, seed),
    }


def path_shares(policy: Tree, seed: int, samples: int = 20_000) -> list[dict[str, Any]]:
    """For each path its probability and its share of many samples."""
    seen = Counter(policy.route(Key.of(seed, range(samples))))
    return [
        {"path": [str(step) for step in path], "p": p, "share": seen[path] / samples} for p, path in policy.paths()
    ]
