"""What `augtree demo` shows: a hand-written tree on the digits and photographs that ship with scikit-learn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from augtree.errors import ArgumentError, need
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


def photos(longest: int = 224) -> list[tuple[str, Tensor]]:
    """Two photographs, by name."""
    found = need("sklearn.datasets", "cli").load_sample_images()
    image = need("PIL.Image", "cli")
    out = []
    for name, array in zip(found.filenames, found.images, strict=True):
        small = image.fromarray(array)
        small.thumbnail((longest, longest))
        out.append((Path(name).stem, torch.from_numpy(np.array(small).transpose(2, 0, 1).copy())))
    return out


def tree() -> Tree:
    """Things lean, wander and fade; they are never flipped."""
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
    """Write the tree, its picture and two sheets; count how often each path is taken."""
    policy = tree()
    pictures, labels = digits()
    chosen = [int((labels == digit).nonzero()[seed % 100]) for digit in range(10)]
    rows = sheet.augmented(policy, [(f"digit {labels[i]}", pictures[i]) for i in chosen], copies=8, seed=seed)
    large = sheet.augmented(policy, photos(), copies=5, seed=seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("--out", f"must be a folder that can be made ({error.strerror})", str(out)) from error
    policy.save(out / "tree.json")
    write_atomically(out / "tree.svg", policy.to_svg().encode())
    write_atomically(out / "sheet.png", sheet.drawn("A hand-written tree on ten digits", rows))
    write_atomically(out / "photos.png", sheet.drawn("The same tree on two photographs", large))
    names = {"tree": "tree.json", "picture": "tree.svg", "sheet": "sheet.png", "photos": "photos.png"}
    return {what: str(out / name) for what, name in names.items()} | {"paths": path_shares(policy, seed)}


def path_shares(policy: Tree, seed: int, samples: int = 20_000) -> list[dict[str, Any]]:
    """For each path its probability and its share of many samples."""
    seen = Counter(policy.route(Key.of(seed, range(samples))))
    return [
        {"path": [str(step) for step in path], "p": round(p, 12), "share": seen[path] / samples}
        for p, path in policy.paths()
    ]
