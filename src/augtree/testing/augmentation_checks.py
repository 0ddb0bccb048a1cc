"""The rules of `check_transform` on how strong a transform is, for those that declare it."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import torch

from augtree.testing.contract import SEED, Broken, anywhere
from augtree.testing.samples import Samples
from augtree.transforms import Transform

GROWTH = 1.2
"""The least that the strongest magnitude changes, as a multiple of the weakest."""


def effects(transform: Transform, samples: Samples) -> list[float]:
    """How much is changed at each magnitude, on average."""
    out = []
    for magnitude in samples.magnitudes:
        scaled = transform.at(magnitude)
        out.append(float(np.mean([samples.effect(scaled(samples.batch, seed=SEED + i)) for i in range(8)])))
    return out


def weakest_near_identity(transform: Transform, samples: Samples) -> None:
    """The weakest magnitude changes little, if it is declared scaled."""

    def check(samples: Samples) -> None:
        weakest, most = effects(transform, samples)[0], samples.most_at_weakest
        if weakest > most:
            raise Broken(f"the weakest magnitude changes {weakest:.1%}, more than {most:.1%}")

    if transform.scaled:
        anywhere(samples, check)


def grows_with_magnitude(transform: Transform, samples: Samples) -> None:
    """A stronger magnitude changes more, if it is declared scaled."""

    def check(samples: Samples) -> None:
        found = effects(transform, samples)
        if found[-1] < GROWTH * found[0] or any(b < 0.9 * a for a, b in pairwise(found)) or not found[-1]:
            listed = ", ".join(f"{m:g}: {e:.2%}" for m, e in zip(samples.magnitudes, found, strict=True))
            raise Broken(f"the effect does not grow ({listed})")

    if transform.scaled:
        anywhere(samples, check)


def two_sided(transform: Transform, samples: Samples) -> None:
    """Both sides of "no effect" occur, if it is declared signed: some changes are opposite to others."""

    def check(samples: Samples) -> None:
        weak = transform.at(samples.magnitudes[0])
        views = zip(*(samples.changes(weak(samples.batch, seed=SEED + i)) for i in range(16)), strict=True)
        pairs = (pair for view in views for pair in combinations(view, 2))
        if min(float(torch.cosine_similarity(one, other, dim=0)) for one, other in pairs) > -0.1:
            raise Broken("declared signed, but all changes point the same way")

    if transform.signed:
        anywhere(samples, check)
