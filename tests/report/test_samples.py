import base64
import io

import numpy as np
import torch
from PIL import Image
from torch_geometric.data import Data

from augtree.data import Dataset, from_arrays
from augtree.report.samples import as_picture, as_svg, graph_picture, largest_classes, layout, row_of, sample_sheet


def coloured(count=40, classes=4):
    """Pictures whose red is 50 times their class."""
    labels = torch.arange(count) % classes
    samples = torch.zeros(count, 3, 8, 8, dtype=torch.uint8)
    samples[:, 0] = (50 * labels)[:, None, None]
    names = tuple(f"kind {i}" for i in range(classes))
    return from_arrays(samples, labels, classes=names, groups=["a", "b"] * (count // 2))


def opened(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_a_row_has_samples_of_its_class_with_group_and_split():
    data = coloured()
    row = row_of(data, 2, each=5, seed=0)
    assert (row.title, len(row.versions), len(row.steps)) == ("kind 2", 4, 4)
    assert (row.original[0] == 100).all()
    assert (row.versions[:, 0] == 100).all()
    assert all(group == "a" and split in ("train", "val", "test") for group, split in row.steps)


def test_the_sheet_shows_all_classes_and_is_the_same_each_time():
    data = coloured()
    png = sample_sheet(data)
    assert png == sample_sheet(data)
    colours = {tuple(pixel) for pixel in opened(png).reshape(-1, 3)}
    assert {(0, 0, 0), (50, 0, 0), (100, 0, 0), (150, 0, 0)} <= colours


def test_unlabelled_samples_are_not_shown():
    data = coloured().with_labels(4)
    hidden = set(data.indices("unlabelled").tolist())
    values = torch.arange(40, dtype=torch.uint8)[:, None, None, None].expand(40, 3, 8, 8).clone()
    numbered = Dataset(**{**data.__dict__, "samples": values})
    row = row_of(numbered, 1, each=40, seed=0)
    shown = {int(row.original[0, 0, 0]), *row.versions[:, 0, 0, 0].tolist()}
    assert shown
    assert not shown & hidden


def test_the_largest_classes_are_shown():
    labels = [0] + [i for i in range(1, 14) for _ in range(2)]
    data = from_arrays(np.zeros((27, 6, 6), np.uint8), labels, split=["train"] * 27)
    assert largest_classes(data) == list(range(1, 13))


def test_channels_of_any_number_become_a_picture():
    for channels, shown in ((1, 1), (2, 1), (3, 3), (4, 3)):
        assert as_picture(torch.zeros(channels, 4, 4, dtype=torch.uint8)).shape == (shown, 4, 4)


def test_graphs_are_drawn():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    picture = graph_picture(Data(edge_index=edges, num_nodes=3))
    assert (picture.dtype, picture.shape) == (torch.uint8, (3, 192, 192))
    assert (picture != 255).any()
    large = Data(edge_index=torch.tensor([[0, 900], [900, 0]]), num_nodes=1000)
    alone = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=1)
    none = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    assert [graph_picture(graph).shape for graph in (large, alone, none)] == [(3, 192, 192)] * 3
    data = from_arrays([Data(x=torch.ones(3, 1) * i, edge_index=edges) for i in range(20)], [0, 1] * 10)
    assert opened(sample_sheet(data)).shape[1] > 7 * 96


def test_neighbours_are_nearer_than_others():
    ends = np.array([[i, i + 1] for i in range(9)]).T
    spots = layout(10, ends)
    assert spots.min() >= 0
    assert spots.max() <= 1
    distance = np.linalg.norm(spots[:, None] - spots[None], axis=2)
    near = distance[ends[0], ends[1]].mean()
    assert near < 0.5 * distance[np.triu_indices(10, 2)].mean()


def test_an_svg_holds_the_picture():
    png = sample_sheet(coloured(8, 2))
    svg = as_svg(png).decode()
    height, width = opened(png).shape[:2]
    assert svg.startswith(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"')
    assert base64.b64decode(svg.split("base64,")[1].split('"')[0]) == png
