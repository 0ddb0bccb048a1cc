"""Cutting a PyG batch into smaller ones, and joining some, without taking every graph out of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from augtree.errors import need
from augtree.transforms.graph_batch import device_of, node_counts
from augtree.transforms.graph_fields import slices, spread_out


def parts_of(batch: Any, size: int) -> list[Any]:
    """Cut a batch into batches of `size` graphs, equal to what PyG makes of the same graphs."""
    count = len(node_counts(batch))
    if count <= size:
        return [batch]
    if not is_plain(batch):
        graphs, make = batch.to_data_list(), need("torch_geometric.data", "graph").Batch.from_data_list
        return [make(graphs[start : start + size]) for start in range(0, count, size)]
    return [part(batch, start, min(start + size, count)) for start in range(0, count, size)]


def part(batch: Any, first: int, last: int) -> Any:
    """The graphs from one to another."""
    out = copy.copy(batch)
    out._slice_dict, out._inc_dict, out._num_graphs = {}, {}, last - first
    nodes = slices(node_counts(batch))
    start, end = int(nodes[first]), int(nodes[last])
    for key in batch.keys():  # noqa: SIM118 - a Batch iterates over pairs
        if key in batch._slice_dict:
            value, cuts, added = cut(batch, key, first, last)
            out[key], out._slice_dict[key], out._inc_dict[key] = value, cuts, added
        elif key == "batch":
            out[key] = batch[key][start:end] - first
        elif key == "ptr":
            out[key] = batch[key][first : last + 1] - start
    if hasattr(batch, "_num_nodes"):
        out._num_nodes = batch._num_nodes[first:last]
        out.num_nodes = end - start
    return out


def cut(batch: Any, key: str, first: int, last: int) -> tuple[Any, Any, Any]:
    """A field's share of some graphs, with PyG's notes on it."""
    value, cuts, added = batch[key], batch._slice_dict[key], batch._inc_dict[key]
    low, high = int(cuts[first]), int(cuts[last])
    along = batch.__cat_dim__(key, value)
    value = value.narrow(0 if along is None else along, low, high - low)
    if isinstance(added, Tensor) and bool(added.any()):
        added = added[first:last]
        value, added = value - added[0].to(value.device), added - added[0]
    elif added is not None:
        added = added[first:last]
    return value, cuts[first : last + 1] - low, added


def joined(*batches: Any) -> Any:
    """Concatenate batches, equal to what PyG makes of the same graphs."""
    if not all(is_plain(batch) and {*batch.keys()} == {*batches[0].keys()} for batch in batches):
        make = need("torch_geometric.data", "graph").Batch.from_data_list
        return make([graph for batch in batches for graph in batch.to_data_list()])
    out = copy.copy(batches[0])
    out._slice_dict, out._inc_dict = {}, {}
    for key in batches[0]._slice_dict:
        out[key], out._slice_dict[key], out._inc_dict[key] = one_behind_another(batches, key)
    nodes = torch.cat([node_counts(batch) for batch in batches])
    out._num_graphs = len(nodes)
    if hasattr(out, "_num_nodes"):
        out._num_nodes = nodes.tolist()
        out.num_nodes = int(nodes.sum())
    device = device_of(out)
    if "batch" in out:
        out.batch = spread_out(nodes).to(device)
    if "ptr" in out:
        out.ptr = slices(nodes).to(device)
    return out


def one_behind_another(batches: Sequence[Any], key: str) -> tuple[Any, Any, Any]:
    """A field of all batches, with PyG's notes on it."""
    values: list[Tensor] = []
    cuts: list[Tensor] = []
    notes: list[Any] = []
    start = added = 0
    for batch in batches:
        value, slice_, inc = batch[key], batch._slice_dict[key], batch._inc_dict[key]
        values.append(value + added if added else value)
        cuts.append(slice_[:-1] + start)
        notes.append(inc if inc is None else inc + added)
        start += int(slice_[-1])
        added += int(batch.__inc__(key, value))
    along = batches[0].__cat_dim__(key, values[0])
    note = None if notes[0] is None else torch.cat(notes)
    return torch.cat(values, 0 if along is None else along), torch.cat([*cuts, torch.tensor([start])]), note


def is_plain(batch: Any) -> bool:
    """Whether all that a batch holds is tensors that PyG has put one behind another, so that it can be cut."""
    known = {*batch._slice_dict, "batch", "ptr", "num_nodes"}
    return {*batch.keys()} <= known and all(
        isinstance(batch[key], Tensor) and isinstance(cuts, Tensor) for key, cuts in batch._slice_dict.items()
    )
