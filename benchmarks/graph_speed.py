"""Graph transformations on whole batches, against loops over graphs.

    python benchmarks/graph_speed.py            # reads NCI1, DD and COLLAB from $AUGTREE_DATA/tu

Two loops take one graph after the other, as GraphCL's data set does, both with numpy's choices, a dense adjacency
matrix for what removes nodes, and Python sets:
- "GraphCL's steps" follows GraphCL's published procedures, which promise less: PermuteEdges adds single directions
  that may double edges or join a node with itself, and edge fields are lost;
- "same promises" does what augtree does, for one graph at a time: symmetric, no doubles, no self-loops.
All sides get the same graphs and ratio 0.2. Batching, which either way happens once, is timed apart.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.data.graphs.tu import read_tu
from measure import machine, side_by_side, summary, table, write

RATIO = 0.2
rng = np.random.default_rng(0)


def without(graph: Any, kept: list[int]) -> Any:
    """The graph on some of its nodes, by way of its adjacency matrix."""
    count = graph.num_nodes
    adjacency = torch.zeros(count, count)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    return replaced(graph, adjacency[kept][:, kept].nonzero().t(), kept)


def replaced(graph: Any, edge_index: torch.Tensor, kept: list[int] | None = None) -> Any:
    """The graph with other edges, perhaps on some of its nodes."""
    out = Data(edge_index=edge_index, y=graph.y, num_nodes=graph.num_nodes if kept is None else len(kept))
    if "x" in graph:
        out.x = graph.x if kept is None else graph.x[kept]
    return out


def drop_nodes(graph: Any) -> Any:
    count = graph.num_nodes
    gone = rng.choice(count, int(RATIO * count), replace=False)
    return without(graph, [node for node in range(count) if node not in gone])


def permute_edges_graphcl(graph: Any) -> Any:
    edges = graph.edge_index.t().numpy()
    change = int(RATIO * len(edges))
    kept = edges[rng.choice(len(edges), len(edges) - change, replace=False)]
    new = rng.integers(graph.num_nodes, size=(change, 2))
    return replaced(graph, torch.from_numpy(np.concatenate([kept, new])).t())


def permute_edges(graph: Any) -> Any:
    count = graph.num_nodes
    edges = [(a, b) for a, b in graph.edge_index.t().tolist() if a < b]
    change = int(RATIO * len(edges))
    there, gone = set(edges), set(rng.choice(len(edges), change, replace=False).tolist())
    change = min(change, count * (count - 1) // 2 - len(edges))
    new: set[tuple[int, int]] = set()
    while len(new) < change:
        a, b = rng.integers(count, size=2).tolist()
        pair = (min(a, b), max(a, b))
        if a != b and pair not in there:
            new.add(pair)
    out = [edge for i, edge in enumerate(edges) if i not in gone] + sorted(new)
    both = torch.tensor(out + [(b, a) for a, b in out], dtype=torch.long).view(-1, 2)
    return replaced(graph, both.t())


def subgraph(graph: Any) -> Any:
    source, target = graph.edge_index.numpy()
    count = graph.num_nodes
    chosen = [int(rng.integers(count))]
    border = set(target[source == chosen[0]].tolist()) - set(chosen)
    while len(chosen) < (1 - RATIO) * count and border:
        chosen.append(int(rng.choice(list(border))))
        border = (border | set(target[source == chosen[-1]].tolist())) - set(chosen)
    return without(graph, sorted(chosen))


def mask_nodes(graph: Any) -> Any:
    if "x" not in graph:
        return graph
    out = graph.clone()
    out.x[rng.choice(graph.num_nodes, int(RATIO * graph.num_nodes), replace=False)] = 0
    return out


LOOPS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "DropNodes": (drop_nodes, drop_nodes),
    "PermuteEdges": (permute_edges, permute_edges_graphcl),
    "Subgraph": (subgraph, subgraph),
    "MaskNodes": (mask_nodes, mask_nodes),
}
"""For each operation: the loop with the same promises, and GraphCL's own steps."""


def measure(name: str, graphs: list[Any], batch_size: int, repeats: int) -> list[dict[str, Any]]:
    which = np.random.default_rng(1).choice(len(graphs), batch_size, replace=False)
    chosen = [graphs[i] for i in which]
    batch = Batch.from_data_list(chosen)
    rows: list[dict[str, Any]] = []
    for operation, (same, graphcl) in LOOPS.items():
        if operation == "MaskNodes" and "x" not in batch:
            continue
        transform = getattr(at.transforms, operation)(RATIO)
        sides: dict[str, Callable[[], object]] = {
            "augtree": partial(transform, batch),
            "same promises": partial(looped, same, chosen),
            "GraphCL's steps": partial(looped, graphcl, chosen),
        }
        found = side_by_side(sides, repeats, block=0.3)  # of large batches too several calls a turn, as in a training
        times = {side: summary(seconds) for side, seconds in found.items()}
        rows.append(
            {"set": name, "operation": operation, "graphs": batch_size, "nodes": int(batch.num_nodes)}
            | {"edges": int(batch.num_edges), **times}
            | {f"{side}, ratio": round(times[side]["ms"] / times["augtree"]["ms"], 1) for side in list(times)[1:]}
        )
    total: dict[str, Any] = {
        "set": name,
        "operation": "all of them",
        "graphs": batch_size,
        "nodes": int(batch.num_nodes),
    }
    for side in ("augtree", "same promises", "GraphCL's steps"):
        total[side] = {"ms": round(sum(row[side]["ms"] for row in rows), 3)}
    for side in ("same promises", "GraphCL's steps"):
        total[f"{side}, ratio"] = round(total[side]["ms"] / total["augtree"]["ms"], 1)
    batching = summary(side_by_side({"b": lambda: Batch.from_data_list(chosen)}, repeats)["b"])
    return [*rows, {**total, "batching": batching}]


def looped(function: Callable[[Any], Any], graphs: list[Any]) -> list[Any]:
    return [function(graph) for graph in graphs]


def cells(row: dict[str, Any]) -> list[str]:
    out = [row["set"], str(row["graphs"]), row["operation"], f"{row['augtree']['ms']:.2f}"]
    for side in ("same promises", "GraphCL's steps"):
        out += [f"{row[side]['ms']:.1f}", f"{row[f'{side}, ratio']:.1f}x"]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(os.environ.get("AUGTREE_DATA", "data")))
    parser.add_argument("--sets", nargs="+", default=["NCI1", "DD", "COLLAB"])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in options.sets:
        graphs = read_tu(options.root / "tu" / f"{name}.zip")
        for size in options.batch_sizes:
            rows += measure(name, graphs, size, options.repeats)
    columns = [
        "set",
        "graphs",
        "operation",
        "augtree ms",
        "same promises ms",
        "ratio",
        "GraphCL's steps ms",
        "ratio",
    ]
    print(table(columns, [cells(row) for row in rows]))
    path = write("graph_speed", {"machine": machine(1), "ratio": RATIO, "rows": rows})
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
