"""The order of the samples of several groups: each group's next samples, mixed, and none twice in a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augtree.keys import Key
from augtree.training.sampling import Order, Rows, stream
from augtree.training.state import seed_of


def skip_short_epochs(drawn: Rows, each: Rows, counts: Rows, batches: int) -> Rows:
    """Where each group continues, so that no sample comes more often than there are batches, if that is possible.

    A group whose epoch would end too soon for that skips the rest of it: other samples each time.
    """
    epochs = -(-(drawn % counts + each) // counts)
    return np.where(epochs > batches, -(-drawn // counts) * counts, drawn)


def mixed_order(
    rows: Sequence[Rows],
    drawn: Sequence[int] | Rows,
    each: Rows,
    first: int,
    t: int,
    seed: int,
    batches: int | None = None,
) -> Order:
    """The order of the next `each[g]` samples of every group g, mixed; each group has an endless stream of its own.

    Given the number of `batches`, none of them holds a sample twice, except where a group is smaller than its share
    of a batch: then its samples, and no others, are in some batches more than once.
    """
    parts = [
        stream(group, start, int(count), seed) if count else (group[:0], group[:0])
        for group, start, count in zip(rows, drawn, each, strict=True)
    ]
    which, where = (np.concatenate(column) for column in zip(*parts, strict=True))
    mix = np.argsort(
        Key.of(seed_of(seed, "mixed"), np.arange(len(which)), role="order", step=t).uniform(), kind="stable"
    )
    if batches is not None:
        mix = mix[spread_repeats(which[mix], batches, t, seed)]
    which, where = which[mix], where[mix]

    def order(start: int, count: int) -> tuple[Rows, Rows]:
        return which[start - first : start - first + count], where[start - first : start - first + count]

    return order


def spread_repeats(which: Rows, batches: int, t: int, seed: int) -> Rows:
    """An order in which no batch holds a sample twice, if none comes more often than there are batches.

    The samples are dealt out sample by sample, one to each batch before any batch has the next; the order of the
    batches is shuffled anew each time.
    """
    _, begins, number = np.unique(which, return_index=True, return_inverse=True)
    by_sample = np.argsort(begins[number], kind="stable")
    names = which[by_sample].reshape(-1, batches)
    priority = Key.of(seed_of(seed, "apart"), np.arange(len(which)), role="order", step=t).uniform()
    batch_order = np.argsort(priority.reshape(-1, batches), axis=1, kind="stable")
    for i in range(1, len(batch_order)):  # the batches that have the next sample already come last
        holds_sample = np.isin(batch_order[i], batch_order[i - 1][names[i - 1] == names[i, 0]])
        batch_order[i] = batch_order[i][np.argsort(holds_sample, kind="stable")]
    return by_sample[np.argsort(batch_order, axis=None, kind="stable")]
