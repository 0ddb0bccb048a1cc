"""A data set from what is in memory already: arrays, tensors, or PyG graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from augtree.data.checks import is_graph, same_length
from augtree.data.dataset import Dataset
from augtree.data.labels import Ints, in_order, numbered
from augtree.data.masks import masks_from
from augtree.data.splits import SPLIT_NAMES, Split, complete_split, make_split, split_number
from augtree.errors import ArgumentError, nearest
from augtree.transforms.base import Transform
from augtree.transforms.pictures import FEW_CHANNELS


def from_arrays(
    x: Any,
    y: Any = None,
    *,
    groups: Sequence[Any] | None = None,
    split: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    name: str = "arrays",
    seed: int = 0,
    preprocess: Transform | None = None,
    fill: int = 128,
    masks: Any = None,
    boxes: Any = None,
) -> Dataset:
    """Make a data set of arrays, tensors or PyG graphs.

    Parameters
    ----------
    x
        Pictures [N,H,W], [N,C,H,W] or [N,H,W,C] (uint8, whole numbers up to 255, floats in [0, 1]); or a list of
        PyG graphs.
    y
        Labels: whole numbers or texts [N], or 0 and 1 [N,L]; by default the y of each graph.
    groups
        The name of each sample's group; by default all are in one.
    split
        "train", "val", "test" or "unlabelled" for each sample; by default 60/20/20, by label and group.
    classes
        The names of the classes; numbers in `y` are places in this list.
    name
        What the set is called in tables and files.
    seed
        Of the split, where one is made.
    preprocess
        What is usual for this data whatever the policy (see `Dataset`).
    fill
        The value that geometric operations should leave in uncovered pixels, 0 to 255.
    masks
        Where the object of each picture is: [N,H,W], not 0 there; all 0 where it is not known.
    boxes
        Boxes around the objects in place of masks: [N,4], x0, y0, x1, y1 in pixels; four zeros where it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from_arrays(np.zeros((10, 8, 8), np.uint8), [0, 1] * 5)
    Dataset(arrays: 10 pictures 1x8x8, 2 classes, 1 group; train 6, val 2, test 2)

    """
    notes: tuple[str, ...] = ()
    samples: Tensor | tuple[Any, ...]
    if isinstance(x, (list, tuple)):
        samples = graphs_from(x)
        y = labels_of(samples) if y is None else y
    else:
        samples, notes = pictures_from(x)
    if y is None:
        raise ArgumentError("y", "must be given: a label for each sample")
    labels, class_names = labels_from(y, classes, len(samples))
    group_names, numbers = groups_from(groups, len(samples))
    places, decided = split_from(split, labels, numbers, seed)
    return Dataset(
        name=name,
        samples=samples,
        labels=labels,
        classes=class_names,
        split=places,
        groups=numbers,
        group_names=group_names,
        preprocess=preprocess,
        fill=fill,
        masks=masks_from(masks, boxes, samples),
        notes=(*notes, *decided),
    )


def as_array(values: Any) -> NDArray[Any]:
    """Tensors, lists and tables' columns as numpy has them; texts as texts, not as objects."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    texts = array.dtype == object and all(isinstance(value, str) for value in array.flat)
    return array.astype(np.str_) if texts else array


def graphs_from(x: Sequence[Any]) -> tuple[Any, ...]:
    """PyG graphs, and nothing else."""
    for i, sample in enumerate(x):
        if not is_graph(sample):
            remedy = "must be a PyG Data (pictures: one array for all, np.stack(x))"
            raise ArgumentError(f"x/{i}", remedy, type(sample).__name__)
        check_edges(sample.edge_index, sample.num_nodes, f"x/{i}/edge_index")
    return tuple(x)


def check_edges(edges: Any, nodes: int, place: str) -> None:
    """Raise where edges are no pairs of a graph's nodes."""
    if not isinstance(edges, Tensor) or edges.ndim != 2 or len(edges) != 2 or edges.dtype != torch.int64:
        raise ArgumentError(place, "must be an int64 tensor [2, edges]", getattr(edges, "shape", edges))
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        got = [int(edges.min()), int(edges.max())]
        raise ArgumentError(place, f"must hold nodes from 0 to {nodes - 1}", got)


def labels_of(graphs: Sequence[Any]) -> NDArray[Any]:
    """What each graph carries as y: one number, or a row of 0 and 1."""
    rows: list[NDArray[Any]] = []
    for i, graph in enumerate(graphs):
        if not isinstance(graph.y, Tensor) or graph.y.numel() != (rows[0].size if rows else graph.y.numel()):
            raise ArgumentError(f"x/{i}/y", "must be a label, as for the other graphs (or give y)", graph.y)
        rows.append(graph.y.detach().cpu().numpy().reshape(-1))
    return np.stack(rows) if rows else np.empty((0, 1))


def pictures_from(x: Any) -> tuple[Tensor, tuple[str, ...]]:
    """uint8 [N,C,H,W], and what was done for that."""
    if not isinstance(x, (np.ndarray, Tensor)):
        raise ArgumentError("x", "must be an array, a tensor, or a list of PyG graphs", type(x).__name__)
    values = as_array(x)
    pictures, notes = eight_bits(values)
    if pictures.ndim == 3:
        return torch.from_numpy(pictures[:, None].copy()), notes
    if pictures.ndim != 4:
        raise ArgumentError("x", "must be pictures [N,H,W], [N,C,H,W] or [N,H,W,C]", list(pictures.shape))
    first, last = (pictures.shape[axis] <= FEW_CHANNELS for axis in (1, 3))
    if first == last:
        why = "both the second and the last could be" if first else "neither the second nor the last can be"
        rule = f"must have 1 to {FEW_CHANNELS} channels in its second place or its last, and sides above that ({why})"
        raise ArgumentError("x", rule, list(pictures.shape))
    if last:
        pictures = pictures.transpose(0, 3, 1, 2)
        notes = (*notes, "channels stood last in x")
    return torch.from_numpy(np.ascontiguousarray(pictures).copy()), notes


def eight_bits(values: NDArray[Any]) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Numbers as uint8: shares of 1 times 255, whole numbers from 0 to 255 as they are, anything else refused."""
    if values.dtype == np.uint8:
        return values, ()
    if values.dtype.kind not in "biuf":
        raise ArgumentError("x", "must be numbers", str(values.dtype))
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if values.dtype.kind in "bf" and low >= 0 and high <= 1:
        return np.rint(values.astype(np.float64) * 255).astype(np.uint8), (f"{values.dtype} in [0, 1] times 255",)
    if low >= 0 and high <= 255 and (values.dtype.kind in "iu" or (values == np.rint(values)).all()):
        return values.astype(np.uint8), (f"{values.dtype} with whole values in 0..255 taken as they are",)
    rule = (
        "must be uint8, floats in [0, 1], or whole values in 0..255 (normalised pictures: undo it, x * std + mean; "
        "other ranges: (x - low) / (high - low))"
    )
    raise ArgumentError("x", rule, f"{values.dtype} from {low:.6g} to {high:.6g}")


def labels_from(y: Any, classes: Sequence[str] | None, count: int) -> tuple[Tensor, tuple[str, ...]]:
    """int64 [N] or uint8 [N,L], and the names of the classes."""
    values = as_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.dtype.kind not in "biufU":
        raise ArgumentError(
            "y", "must be whole numbers or texts [N], or 0 and 1 [N,L]", f"{values.dtype} {list(values.shape)}"
        )
    same_length("y", len(values), count)
    if values.ndim == 2:
        return matrix_from(values, classes)
    if values.dtype.kind == "U":
        names = values.tolist()
        known = in_order(names) if classes is None else tuple(classes)
        strangers = [(i, name) for i, name in enumerate(names) if name not in set(known)]
        if strangers:
            i, name = strangers[0]
            raise ArgumentError(f"y/{i}", f"must be one of the classes{nearest(name, known)}", name)
        return torch.from_numpy(numbered(names, known)), known
    numbers = values.astype(np.int64)
    if (numbers != values).any():
        i = int(np.flatnonzero(numbers != values)[0])
        raise ArgumentError(f"y/{i}", "must be a whole number", float(values[i]))
    if classes is not None:
        return torch.from_numpy(numbers), tuple(classes)
    found, which = np.unique(numbers, return_inverse=True)
    return torch.from_numpy(which.astype(np.int64)), tuple(str(number) for number in found)


def matrix_from(values: NDArray[Any], classes: Sequence[str] | None) -> tuple[Tensor, tuple[str, ...]]:
    """Several labels a sample."""
    if values.dtype.kind == "U" or not np.isin(values, (0, 1)).all():
        raise ArgumentError("y", "must be 0 and 1 where it is a matrix [N,L]", np.unique(values)[:5].tolist())
    names = tuple(str(i) for i in range(values.shape[1])) if classes is None else tuple(classes)
    return torch.from_numpy(values.astype(np.uint8)), names


def groups_from(groups: Sequence[Any] | None, count: int) -> tuple[tuple[str, ...], Ints]:
    """The names of the groups, sorted, and each sample's number; one group where none are given."""
    if groups is None:
        return ("all",), np.zeros(count, np.int64)
    values = as_array(groups)
    if values.ndim != 1 or values.dtype.kind not in "biuU":
        raise ArgumentError("groups", "must be texts or whole numbers [N]", f"{values.dtype} {list(values.shape)}")
    same_length("groups", len(values), count)
    names = [str(value) for value in values.tolist()]
    known = tuple(sorted(set(names)))
    return known, numbered(names, known)


def split_from(split: Sequence[str] | None, labels: Tensor, groups: Ints, seed: int) -> tuple[Split, tuple[str, ...]]:
    """The split that was given, completed, or one that is made."""
    if split is None:
        note = f"no split is given: 60/20/20 by label and group, seed {seed}"
        return make_split(labels, groups=groups, seed=seed), (note,)
    split = list(split)
    same_length("split", len(split), len(labels))
    numbers = [split_number(name) for name in split]
    if None in numbers:
        i = numbers.index(None)
        raise ArgumentError(f"split/{i}", f"must be one of {', '.join(SPLIT_NAMES)}", split[i])
    return complete_split(np.array(numbers, np.int8), labels, groups=groups, seed=seed)
