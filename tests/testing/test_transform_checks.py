"""All built-ins keep the contract, and every check catches a transform that is broken in its way."""

import multiprocessing
import random
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.errors import CheckError, InputError
from augtree.testing import check_transform
from augtree.testing.transform_checks import CHECKS
from augtree.transforms import (
    BUILT_IN,
    Brightness,
    Chain,
    Flip,
    GaussianBlur,
    Invert,
    Normalize,
    ResizedCrop,
    Rotate,
    Transform,
    images,
    kernels,
)
from augtree.transforms.base import check_magnitude
from augtree.transforms.graphs import GraphTransform
from augtree.transforms.pictures import Work


def molecule(nodes=18, seed=0):
    rng = torch.Generator().manual_seed(seed)
    found = (torch.rand(nodes, nodes, generator=rng) < 0.25).triu(1)
    edge_index = (found | found.t()).nonzero().t().contiguous()
    return Data(
        x=torch.randn(nodes, 3, generator=rng),
        edge_index=edge_index,
        edge_attr=torch.arange(edge_index.shape[1]).float().view(-1, 1),
        y=torch.tensor([seed]),
    )


def built(kind):
    """An instance with arguments that are not all defaults."""
    if issubclass(kind, images.Operation | GraphTransform):
        return kind(0.4)
    special = {"Chain": Chain([Flip(), (GaussianBlur(), 0.5)]), "ResizedCrop": ResizedCrop(size=20)}
    special["Normalize"] = Normalize((0.4, 0.5, 0.6), (0.2, 0.2, 0.2))
    return special.get(kind.__name__) or kind()


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_keeps_the_contract(name, photos):
    transform = built(BUILT_IN[name])
    sample = Batch.from_data_list([molecule(seed=i) for i in range(6)]) if transform.domain == "graph" else photos
    assert check_transform(transform, sample) == list(CHECKS)


def test_trees_and_wrapped_functions_keep_it_too(photos):
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.5).with_node(2, Brightness(0.4), p=0.5)
    assert check_transform(tree, photos) == list(CHECKS)
    assert check_transform(at.wrap(posterize_some, name="Some"), photos[0]) == list(CHECKS)
    assert check_transform(at.wrap(fade, name="Fade", takes="hwc", magnitude=0.4), photos) == list(CHECKS)
    assert check_transform(at.wrap(graph_noise, name="GraphNoise", takes="graph"), molecule()) == list(CHECKS)


def posterize_some(picture):
    return picture & (0xFF << random.randrange(5)) & 0xFF


def fade(picture, magnitude):
    return (picture * (1 - magnitude * np.random.rand())).astype(np.uint8)


def graph_noise(graph):
    if "x" in graph:
        graph.x = graph.x + torch.randn_like(graph.x)
    else:
        graph.num_nodes = graph.num_nodes
    return graph


# ---- broken in one way each ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sound(Transform):
    """Nothing wrong with it: a brightness that the broken ones start from."""

    magnitude: float = field()
    scaled = True
    signed = True

    def __post_init__(self):
        check_magnitude(self.magnitude)

    def factors(self, key):
        sign = np.where(key.uniform(1) < 0.5, -1.0, 1.0)
        return (1 + 0.9 * (self.magnitude - 0.2 * key.uniform(0)).clip(0) * sign).astype(np.float32)

    def draw(self, key, shape):
        return [[Work(kernels.brightness, key.rows, (self.factors(key),))]]


@dataclass(frozen=True)
class Unmakeable(Sound):
    """Its file form cannot be read again."""

    def arguments(self):
        return {"strength": self.magnitude}


@dataclass(frozen=True)
class Forgetful(Sound):
    """Its file form leaves an argument out."""

    fill: int = 0

    def arguments(self):
        return {"magnitude": self.magnitude}


@dataclass(frozen=True, repr=False)
class Anonymous(Sound):
    """It prints as its address."""

    __repr__ = object.__repr__


@dataclass(frozen=True)
class Overwriting(Sound):
    """It writes into the batch."""

    def __call__(self, batch, **key):
        out = super().__call__(batch, **key)
        batch.copy_(out) if batch.dtype == out.dtype else None
        return out


@dataclass(frozen=True)
class Fickle(Sound):
    """It draws from a generator of its own."""

    def factors(self, key):
        rng = np.random.default_rng()
        return (1 + 0.9 * self.magnitude * rng.choice([-1, 1], len(key)) * rng.random(len(key))).astype(np.float32)


@dataclass(frozen=True)
class Stuck(Sound):
    """It says it is random, and is not."""

    def factors(self, key):
        return np.full(len(key), 1 + 0.9 * self.magnitude, np.float32)


@dataclass(frozen=True)
class SecretlyRandom(Sound):
    """It says it is not random, and is."""

    random = False


@dataclass(frozen=True)
class Careless(Sound):
    """It moves torch's global generator."""

    def factors(self, key):
        torch.rand(3)
        return super().factors(key)


@dataclass(frozen=True)
class CarelessPython(Sound):
    """It moves Python's global generator."""

    def factors(self, key):
        random.random()
        return super().factors(key)


@dataclass(frozen=True)
class CarelessNumpy(Sound):
    """It moves numpy's global generator."""

    def factors(self, key):
        np.random.rand()
        return super().factors(key)


@dataclass(frozen=True)
class Homesick(Sound):
    """It does something else in a worker."""

    def factors(self, key):
        return super().factors(key) * (1 if multiprocessing.parent_process() is None else 0.5)


@dataclass(frozen=True)
class Unpicklable(Sound):
    """It cannot be sent to a worker."""

    def __reduce__(self):
        raise TypeError("cannot pickle a lock")


@dataclass(frozen=True)
class Floating(Sound):
    """It returns floats for bytes."""

    def __call__(self, batch, **key):
        return super().__call__(batch, **key).float()


@dataclass(frozen=True)
class Shrinking(Sound):
    """It loses a row of pixels."""

    def __call__(self, batch, **key):
        return super().__call__(batch, **key)[..., 1:, :]


@dataclass(frozen=True)
class Fragile(Sound):
    """It cannot take small pictures."""

    def draw(self, key, shape):
        if min(shape.height, shape.width) < 3:
            raise ValueError("kernel size can't be greater than the picture")
        return super().draw(key, shape)


@dataclass(frozen=True)
class Leaky(Sound):
    """Its result depends on the mean of the batch."""

    def __call__(self, batch, **key):
        out = super().__call__(batch, **key)
        return (out.float() * 0.9 + batch.float().mean().nan_to_num() * 0.1).to(out.dtype)


@dataclass(frozen=True)
class Batchwise(Sound):
    """It draws by place in the batch, not by index."""

    def factors(self, key):
        return (1 + 0.9 * self.magnitude * np.sin(7.0 * key.rows + key.state[:1] % 10)).astype(np.float32)


@dataclass(frozen=True)
class Violent(Sound):
    """Its weakest magnitude is strong."""

    def factors(self, key):
        return (super().factors(key) - 1) * 0.1 + 0.2 * (1 - self.magnitude * 0.5) * key.uniform(2).astype(np.float32)


@dataclass(frozen=True)
class Flat(Sound):
    """All its magnitudes are the same."""

    def factors(self, key):
        return (1 + 0.1 * np.where(key.uniform(1) < 0.5, -1.0, 1.0) * key.uniform(0)).astype(np.float32)


@dataclass(frozen=True)
class OneSided(Sound):
    """It says it has two sides, and only darkens."""

    def factors(self, key):
        return 1 - np.abs(super().factors(key) - 1)


@dataclass(frozen=True)
class Misnamed(Sound):
    """It has the name of a built-in."""

    @property
    def name(self):
        return "Rotate"


class GraphSound(GraphTransform):
    """Nothing wrong with it, on graphs."""

    scaled = False
    random = False

    def on_batch(self, graphs, ratio, uniform, state):
        return graphs.batch.clone()


@dataclass(frozen=True)
class Relabelling(GraphSound):
    """It changes the label."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "y" in out:
            out.y = out.y + 1
        return out


@dataclass(frozen=True)
class Bridging(GraphSound):
    """It adds an edge between two graphs."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "edge_index" in out and out.edge_index.numel() and out.num_nodes > 10:
            out.edge_index[1, 0] = out.num_nodes - 1
        return out


@dataclass(frozen=True)
class NotANumber(GraphSound):
    """It makes features that are no numbers."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "x" in out:
            out.x = out.x / 0.0 * 0.0
        return out


@dataclass(frozen=True)
class Misaligned(GraphSound):
    """It loses an edge and keeps its attribute."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "edge_attr" in out:
            out.edge_attr = torch.cat([out.edge_attr, out.edge_attr[-1:]])
            out._slice_dict = {**out._slice_dict}
            out._slice_dict["edge_attr"] = out._slice_dict["edge_attr"].clone()
            out._slice_dict["edge_attr"][-1] += 1
        return out


BROKEN = [
    (Unmakeable, "constructible from its file form"),
    (Forgetful, "arguments round-trip"),
    (Anonymous, "stable repr"),
    (Misnamed, "unique name"),
    (Overwriting, "input untouched"),
    (Fickle, "same key, same bytes"),
    (Stuck, "other keys differ"),
    (SecretlyRandom, "other keys differ"),
    (Careless, "global random state untouched"),
    (CarelessPython, "global random state untouched"),
    (CarelessNumpy, "global random state untouched"),
    (Homesick, "equal in a worker process"),
    (Unpicklable, "equal in a worker process"),
    (Floating, "type, dtype and device kept"),
    (Shrinking, "shape rule"),
    (Relabelling, "label kept"),
    (Bridging, "finite and index-valid output"),
    (NotANumber, "finite and index-valid output"),
    (Misaligned, "finite and index-valid output"),
    (Fragile, "degenerate inputs"),
    (Leaky, "no cross-sample leak"),
    (Batchwise, "any split, same bytes"),
    (Violent, "weakest magnitude near identity"),
    (Flat, "effect grows with magnitude"),
    (OneSided, "two-sided where declared"),
]


def test_the_sound_ones_are_sound(photos):
    check_transform(Sound(0.4), photos)


@pytest.mark.parametrize(("kind", "check"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_each_check_catches_what_it_is_for(kind, check, photos):
    transform = kind(0.4, fill=3) if kind is Forgetful else kind(0.4)
    sample = Batch.from_data_list([molecule(seed=i) for i in range(3)]) if issubclass(kind, GraphSound) else photos
    with pytest.raises(CheckError) as caught:
        check_transform(transform, sample)
    assert check in caught.value.failures, caught.value
    assert caught.value.failures[check]


def test_every_check_has_its_broken_transform():
    assert {check for _, check in BROKEN} == set(CHECKS)


def test_what_is_wrong_is_said_in_words(photos):
    with pytest.raises(CheckError, match=r"Shrinking \(Shrinking\) fails \d+ checks:\n") as caught:
        check_transform(Shrinking(0.4), photos)
    assert "a uint8 batch: shape [6, 3, 48, 48] became [6, 3, 47, 48]" in str(caught.value)


def test_a_sample_is_a_picture_or_a_graph():
    with pytest.raises(InputError, match=r"a sample must be a picture \(a tensor\) or a PyG graph, got list"):
        check_transform(Invert(0.6), [1, 2])
