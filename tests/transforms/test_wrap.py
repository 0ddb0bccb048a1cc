import pickle
import random

import numpy as np
import pytest
import torch
from PIL import ImageOps
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.errors import ArgumentError, InputError, TransformError


def invert(picture):
    return 255 - picture


def jitter(picture):
    """Draws from all three global generators."""
    amount = random.randrange(100) + np.random.randint(100) + int(torch.randint(50, ()))
    return torch.full_like(picture, amount)


def drop_first_edge(graph):
    graph.edge_index = graph.edge_index[:, 1:]
    return graph


class Albumentation:
    """Speaks Albumentations' protocol: called with image=, returns a dict, has a generator and a seed of its own."""

    def __init__(self):
        self.generator = np.random.default_rng()

    def set_random_seed(self, seed):
        self.generator = np.random.default_rng(seed)

    def __call__(self, *, image):
        assert image.dtype == np.uint8
        return {"image": np.clip(image.astype(int) + self.generator.integers(-50, 50), 0, 255).astype(np.uint8)}


def test_functions_in_every_form(noise):
    grey = noise[:, :1]
    for batch in (noise, grey):
        assert torch.equal(at.wrap(invert, name="Neg")(batch), 255 - batch)
        assert torch.equal(at.wrap(invert, name="Neg", takes="hwc")(batch), 255 - batch)
        assert torch.equal(at.wrap(ImageOps.invert, name="Neg", takes="pil")(batch), 255 - batch)
    assert torch.equal(at.wrap(ImageOps.invert, name="Neg", takes="pil")(noise[0]), 255 - noise[0])


def test_a_function_gets_its_magnitude(noise):
    dim = at.wrap(lambda picture, m: (picture * m).to(torch.uint8), name="Dim", magnitude=0.5)
    assert torch.equal(dim(noise), noise // 2)
    assert torch.equal(dim.at(1.0)(noise), noise)
    assert str(dim) == "Dim(0.5)"


def test_draws_from_global_generators_are_repeatable_and_leave_no_trace(noise):
    transform = at.wrap(jitter, name="Jitter")
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()
    first = transform(noise, seed=1)
    assert random.getstate() == states[0]
    assert np.array_equal(np.random.get_state()[1], states[1])
    assert torch.equal(torch.get_rng_state(), states[2])
    random.seed(99)
    torch.manual_seed(99)
    assert torch.equal(transform(noise, seed=1), first)
    assert not torch.equal(transform(noise, seed=2), first)
    assert torch.equal(transform(noise[5:9], seed=1, index=5), first[5:9])
    assert len({int(picture[0, 0, 0]) for picture in first}) > 20


def test_albumentations_transforms_are_seeded_by_their_own_means(noise):
    transform = at.wrap(Albumentation(), name="Shift", takes="albumentations")
    first = transform(noise, seed=1)
    assert torch.equal(transform(noise, seed=1), first)
    assert not torch.equal(transform(noise, seed=2), first)


def test_graphs_one_by_one():
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([1]))
    transform = at.wrap(drop_first_edge, name="DropFirst", takes="graph")
    out = transform(Batch.from_data_list([graph, graph]))
    assert [g.num_edges for g in out.to_data_list()] == [1, 1]
    assert graph.num_edges == 2
    assert transform(graph).edge_index.tolist() == [[1], [0]]
    half = at.transforms.Chain([(transform, 0.5)])(Batch.from_data_list([graph] * 40), seed=0)
    assert {g.num_edges for g in half.to_data_list()} == {1, 2}


def test_the_input_is_safe_from_functions_that_write_into_it(noise):
    def blacken(picture):
        picture[:] = 0
        return picture

    before = noise.clone()
    assert int(at.wrap(blacken, name="Blacken")(noise).max()) == 0
    assert torch.equal(noise, before)


def test_floats_go_through_as_bytes(noise):
    assert torch.allclose(at.wrap(invert, name="Neg")(noise.float() / 255), 1 - noise.float() / 255)


def fails(picture):
    raise KeyError("fog density")


@pytest.mark.parametrize(
    ("function", "takes", "message"),
    [
        (fails, "chw", r"Fog \(transforms.test_wrap.fails\) raised KeyError: 'fog density'"),
        (lambda x: x.float(), "chw", r"Fog must return uint8 \[3, 32, 24\] as it got, got float32 \[3, 32, 24\]"),
        (lambda x: x[:, :4], "chw", r"must return uint8 \[3, 32, 24\] as it got, got uint8 \[3, 4, 24\]"),
        (lambda x: None, "chw", "must return a tensor as it got, got NoneType"),
        (lambda x: x.numpy(), "chw", "must return a tensor as it got, got ndarray"),
        (lambda x: x[:5], "hwc", r"must return uint8 \[32, 24, 3\] as it got, got uint8 \[5, 24, 3\]"),
        (
            lambda x: x.transpose(2, 0, 1),
            "hwc",
            r"must return uint8 \[32, 24, 3\] as it got, got uint8 \[3, 32, 24\]",
        ),
        (lambda x: x / 255, "hwc", "got float64"),
        (lambda x: 3, "hwc", "must return an array as it got, got int"),
        (lambda x: x.convert("L"), "pil", "must return RGB of 24 x 32 as it got, got L of 24 x 32"),
        (lambda x: x.rotate(90, expand=True), "pil", "must return RGB of 24 x 32 as it got, got RGB of 32 x 24"),
        (lambda x: None, "pil", "must return a Pillow image as it got, got NoneType"),
        (lambda image: image, "albumentations", "must return a dict with an image, got ndarray"),
        (lambda image: {"image": image[:3]}, "albumentations", r"got uint8 \[3, 24, 3\]"),
    ],
)
def test_what_a_function_must_not_return_is_named(noise, function, takes, message):
    with pytest.raises(TransformError, match=message):
        at.wrap(function, name="Fog", takes=takes)(noise[..., :24])


def test_a_graph_function_returns_a_graph():
    with pytest.raises(TransformError, match="Fog must return a PyG Data, got int"):
        at.wrap(lambda graph: 1, name="Fog", takes="graph")(Data(x=torch.ones(2, 1)))


def adds_a_field(graph):
    graph.extra = torch.ones(1)
    return graph


def test_a_graph_function_keeps_the_fields():
    graph = Data(x=torch.ones(2, 1), y=torch.tensor([1]))
    with pytest.raises(
        TransformError, match=r"must return a graph with the fields \['x', 'y'\] as it got, got \['extra'"
    ):
        at.wrap(adds_a_field, name="Fog", takes="graph")(graph)


def sets_num_nodes(graph):
    graph.num_nodes = 3
    return graph


def test_a_graph_function_may_set_the_number_of_nodes():
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    counted = at.wrap(sets_num_nodes, name="Counted", takes="graph")
    assert counted(graph, seed=0).num_nodes == 3
    some = at.transforms.Chain([(counted, 0.5)])(Batch.from_data_list([graph] * 20), seed=0)
    assert some.num_nodes == 60
    assert some[19].edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_a_lack_of_memory_is_no_fault_of_the_function(noise, error):
    def exhausted(picture):
        raise error("out of memory")

    with pytest.raises(error, match=r"^out of memory$"):
        at.wrap(exhausted, name="Fog")(noise, seed=0)


def test_vectors_that_follow_a_batch_are_kept():
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    batch = Batch.from_data_list([graph, graph], follow_batch=["edge_index"])
    out = at.wrap(drop_first_edge, name="Drop", takes="graph")(batch)
    assert out.edge_index_batch.tolist() == [0, 1]


def test_functions_on_the_cpu_leave_the_gpus_generators_alone(noise, monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    at.wrap(jitter, name="Jitter")(noise[:3], seed=0)
    assert seeded == []


def test_pictures_and_graphs_do_not_mix(noise):
    with pytest.raises(InputError, match="Fog works on graphs, got pictures"):
        at.wrap(drop_first_edge, name="Fog", takes="graph")(noise)
    with pytest.raises(InputError, match="Fog works on pictures, got graphs"):
        at.wrap(invert, name="Fog")(Data(x=torch.ones(2, 1)))
    with pytest.raises(InputError, match="needs 1 or 3 channels, got 4"):
        at.wrap(ImageOps.invert, name="Fog", takes="pil")(torch.zeros(4, 5, 5, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Rotate"}, "name must not be that of a built-in transform, got 'Rotate'"),
        ({"name": "Tree"}, "name must not be that of a built-in transform"),
        ({"name": "my fog"}, "name must be a word such as Fog"),
        ({"name": "Fog", "takes": "bgr"}, "takes must be one of chw, hwc, pil, albumentations, graph, got 'bgr'"),
        ({"name": "Fog", "magnitude": 2}, "magnitude must be a number"),
        ({"name": "Fog", "magnitude": 0.5, "takes": "albumentations"}, "magnitude must not be given: Albumentations"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        at.wrap(invert, **arguments)


def test_what_is_wrapped_is_callable():
    with pytest.raises(ArgumentError, match="function must be callable, got 3"):
        at.wrap(3, name="Fog")


def test_it_is_a_value():
    one, other = at.wrap(invert, name="Neg"), at.wrap(invert, name="Neg")
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one != at.wrap(invert, name="Other")
    assert repr(one) == "wrap(transforms.test_wrap.invert, name='Neg', takes='chw')"


EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.full((2, 1), torch.nan)}, r"x with finite values, got 2 that are not"),
        ({"x": torch.ones(2, 1, dtype=torch.float64)}, "x as float32 of 2 dimensions, got float64 of 2 dimensions"),
        ({"x": torch.ones(2)}, "x as float32 of 2 dimensions, got float32 of 1 dimensions"),
        ({"x": torch.ones(2, 3)}, r"x with entries of shape \[1\], got \[3\]"),
        ({"x": [1, 2]}, "x as a tensor, got list"),
        ({"edge_index": EDGES + 1}, "edges between nodes 0 to 1, got 1 to 2"),
        ({"edge_index": EDGES.float()}, "edge_index as int64 of 2 dimensions, got float32 of 2 dimensions"),
    ],
)
def test_a_graph_that_no_model_can_take_is_refused(changes, message):
    def changed(graph):
        return graph.update(changes)

    graph = Data(x=torch.ones(2, 1), edge_index=EDGES)
    with pytest.raises(TransformError, match=f"^Fog must return {message}$"):
        at.wrap(changed, name="Fog", takes="graph")(graph, seed=0)


def test_a_graph_function_may_take_nodes_away_and_leave_missing_values_missing():
    graph = Data(x=torch.tensor([[1.0], [torch.nan]]), edge_index=EDGES)
    fewer = at.wrap(lambda graph: graph.subgraph(torch.tensor([1])), name="Fewer", takes="graph")(graph, seed=0)
    assert (fewer.num_nodes, fewer.num_edges) == (1, 0)
