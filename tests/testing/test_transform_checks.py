"""All built-ins keep the contract, and every check catches a transform that is broken in its way."""

import os
import random
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.errors import ArgumentError, CheckError, InputError
from augtree.testing import check_transform
from augtree.testing.transform_checks import CHECKS
from augtree.transforms import (
    BUILT_IN,
    Brightness,
    Chain,
    Flip,
    GaussianBlur,
    GraphCL,
    Invert,
    Normalize,
    OneOf,
    QuarterTurn,
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
        pos=torch.randn(nodes, 2, generator=rng),
        group=torch.tensor([3]),
    )


def built(kind):
    """An instance with arguments that are not all defaults."""
    if issubclass(kind, images.Operation | GraphTransform | GraphCL):
        return kind(0.4)
    special = {"Chain": Chain([Flip(), (GaussianBlur(), 0.5)]), "ResizedCrop": ResizedCrop(size=20)}
    special["OneOf"] = OneOf([(GaussianBlur(), 3), Chain([QuarterTurn(), Invert()])])
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
class Addressed(Sound):
    """It prints with something that differs from process to process."""

    def __repr__(self):
        return f"Addressed({self.magnitude}, {set('abcdefgh')})"


@dataclass(frozen=True)
class Overwriting(Sound):
    """It writes into the batch."""

    def __call__(self, batch, **key):
        out = super().__call__(batch, **key)
        batch.copy_(out)
        return out


@dataclass(frozen=True)
class OverwritingFloats(Sound):
    """It writes into float batches."""

    def __call__(self, batch, **key):
        out = super().__call__(batch, **key)
        if batch.is_floating_point():
            batch.zero_()
        return out


@dataclass(frozen=True)
class NotFinite(Sound):
    """It makes NaN of floats."""

    def __call__(self, batch, **key):
        out = super().__call__(batch, **key)
        return out * float("nan") if batch.is_floating_point() else out


@dataclass(frozen=True)
class Secretive(Sound):
    """An argument that does not count when compared is lost in the file."""

    shift: int = field(default=0, compare=False)

    def arguments(self):
        return {"magnitude": self.magnitude}

    def factors(self, key):
        return super().factors(key) * (1 - self.shift / 10)


@dataclass(frozen=True)
class Stepless(Sound):
    """It is the same at every step."""

    def __call__(self, batch, *, seed=None, index=None, step=0):
        return super().__call__(batch, seed=seed, index=index)


@dataclass(frozen=True)
class Placeless(Sound):
    """It is the same for every sample."""

    def factors(self, key):
        return np.repeat(super().factors(key)[:1], len(key))

    def __call__(self, batch, *, seed=None, index=None, step=0):
        return super().__call__(batch, seed=seed, step=step)


@dataclass(frozen=True)
class Seeding(Sound):
    """It leaves the generators in a state of its own."""

    def factors(self, key):
        random.seed(42)
        np.random.seed(42)
        torch.manual_seed(42)
        return super().factors(key)


@dataclass(frozen=True)
class Deadly(Sound):
    """It ends the process of a worker."""

    def factors(self, key):
        if sys.argv[0] == "-c":  # a process of the checks
            os._exit(3)
        return super().factors(key)


@dataclass(frozen=True)
class Loud(Sound):
    """It prints: there is nothing wrong with that."""

    def factors(self, key):
        print("a line on stdout")
        return super().factors(key)


@dataclass(frozen=True)
class Wavering(Sound):
    """It grows, but not all the way."""

    def factors(self, key):
        level = {0.2: 0.1, 0.4: 0.9, 0.6: 0.3, 0.8: 0.5, 1.0: 0.9}[round(self.magnitude, 1)]
        sign = np.where(key.uniform(1) < 0.5, -1.0, 1.0)
        return (1 + 0.9 * level * sign * (0.5 + key.uniform(0) / 2)).astype(np.float32)


@dataclass(frozen=True)
class Noisy(Sound):
    """Its weakest magnitude is noise on every pixel."""

    signed = False

    def draw(self, key, shape):
        sigma = np.full(len(key), 50 + 60 * self.magnitude, np.float32)
        return [[Work(kernels.add_noise, key.rows, (key.state.view(np.int64), sigma))]]


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
        return super().factors(key) * (0.5 if sys.argv[0] == "-c" else 1)


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
class Spoiling(Sound):
    """It makes a wider picture of a small one."""

    def __call__(self, batch, **key):
        out = super().__call__(batch, **key)
        return torch.cat([out, out], dim=-1) if batch.shape[-1] < 3 else out


@dataclass(frozen=True)
class Failing(Sound):
    """It does not work at all."""

    def draw(self, key, shape):
        raise KeyError("density")


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
class NotANumberOfEdges(GraphSound):
    """It makes edge attributes that are no numbers."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "edge_attr" in out:
            out.edge_attr = out.edge_attr * float("nan")
        return out


@dataclass(frozen=True)
class Emptying(GraphSound):
    """It takes all nodes of the second graph."""

    def on_batch(self, graphs, ratio, uniform, state):
        kept = graphs.graph != 1
        return graphs.keep_nodes(kept, torch.bincount(graphs.graph[kept], minlength=len(graphs.nodes)))


@dataclass(frozen=True)
class Widening(GraphSound):
    """It adds a feature."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        out.x = torch.cat([out.x, out.x], dim=1)
        return out


@dataclass(frozen=True)
class Losing(GraphSound):
    """It loses the last graph."""

    def act(self, graphs, key):
        return Batch.from_data_list(graphs.to_data_list()[:-1] or graphs.to_data_list())


@dataclass(frozen=True)
class Regrouping(GraphSound):
    """It changes a field of the graph that is no label."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "group" in out:
            out.group = out.group + 1
        return out


@dataclass(frozen=True)
class Shortening(GraphSound):
    """It leaves out a row of a node field."""

    def on_batch(self, graphs, ratio, uniform, state):
        out = graphs.batch.clone()
        if "pos" in out and out.num_nodes > 1:
            out.pos = out.pos[:-1]
            out._slice_dict = {**out._slice_dict, "pos": out._slice_dict["pos"].clamp(max=len(out.pos))}
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
    (Failing, "runs on the sample"),
    (Unmakeable, "constructible from its file form"),
    (Forgetful, "arguments round-trip"),
    (Secretive, "arguments round-trip"),
    (Anonymous, "stable repr"),
    (Addressed, "equal in a worker process"),
    (Misnamed, "unique name"),
    (Overwriting, "input untouched"),
    (OverwritingFloats, "input untouched"),
    (Fickle, "same key, same bytes"),
    (Stuck, "other keys differ"),
    (Stepless, "other keys differ"),
    (Placeless, "other keys differ"),
    (SecretlyRandom, "other keys differ"),
    (Careless, "global random state untouched"),
    (CarelessPython, "global random state untouched"),
    (CarelessNumpy, "global random state untouched"),
    (Seeding, "global random state untouched"),
    (Homesick, "equal in a worker process"),
    (Unpicklable, "equal in a worker process"),
    (Deadly, "equal in a worker process"),
    (Floating, "type, dtype and device kept"),
    (Shrinking, "shape rule"),
    (Widening, "shape rule"),
    (Losing, "shape rule"),
    (Relabelling, "label kept"),
    (Regrouping, "label kept"),
    (NotFinite, "finite and index-valid output"),
    (Bridging, "finite and index-valid output"),
    (NotANumber, "finite and index-valid output"),
    (NotANumberOfEdges, "finite and index-valid output"),
    (Emptying, "finite and index-valid output"),
    (Shortening, "finite and index-valid output"),
    (Misaligned, "finite and index-valid output"),
    (Fragile, "degenerate inputs"),
    (Spoiling, "degenerate inputs"),
    (Leaky, "no cross-sample leak"),
    (Batchwise, "any split, same bytes"),
    (Violent, "weakest magnitude near identity"),
    (Noisy, "weakest magnitude near identity"),
    (Flat, "effect grows with magnitude"),
    (Wavering, "effect grows with magnitude"),
    (OneSided, "two-sided where declared"),
]


def test_the_sound_ones_are_sound(photos):
    check_transform(Sound(0.4), photos)
    check_transform(Loud(0.4), photos)
    check_transform(GraphSound(0.4), molecule())


@pytest.mark.parametrize(("kind", "check"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_each_check_catches_what_it_is_for(kind, check, photos):
    extra = {Forgetful: {"fill": 3}, Secretive: {"shift": 3}}.get(kind, {})
    sample = Batch.from_data_list([molecule(seed=i) for i in range(3)]) if issubclass(kind, GraphSound) else photos
    with pytest.raises(CheckError) as caught:
        check_transform(kind(0.4, **extra), sample)
    assert check in caught.value.failures, caught.value
    assert caught.value.failures[check]


def test_every_check_has_its_broken_transform():
    assert {check for _, check in BROKEN} == set(CHECKS)


def test_what_is_wrong_is_said_in_words(photos):
    with pytest.raises(CheckError, match=r"Shrinking \(Shrinking\) fails \d+ checks:\n") as caught:
        check_transform(Shrinking(0.4), photos)
    assert "a uint8 batch: shape [6, 3, 48, 48] became [6, 3, 47, 48]" in str(caught.value)


def test_what_does_not_run_is_said_once(photos):
    with pytest.raises(CheckError) as caught:
        check_transform(at.wrap(float_of, name="FloatOf"), photos)
    assert list(caught.value.failures) == ["runs on the sample"]
    assert "must return uint8 [3, 48, 48] as it got, got float32" in str(caught.value)


def float_of(picture):
    return picture.float()


def test_a_process_that_died_is_no_matter_for_the_next(photos):
    with pytest.raises(CheckError, match="it ended the process there"):
        check_transform(Deadly(0.4), photos)
    check_transform(Sound(0.4), photos)


@pytest.mark.parametrize("what", ["digit", "black", "flat", "tiny", "tall"])
def test_built_ins_pass_whatever_the_sample(what):
    samples = {
        "digit": at.data.load("digits").samples[0],
        "black": torch.zeros(3, 24, 24, dtype=torch.uint8),
        "flat": torch.full((1, 24, 24), 77, dtype=torch.uint8),
        "tiny": torch.randint(0, 256, (1, 1, 2), dtype=torch.uint8),
        "tall": torch.randint(0, 256, (3, 40, 20), dtype=torch.uint8),
    }
    sample = samples[what]
    for kind in BUILT_IN.values():
        transform = built(kind)
        if transform.domain == "image" and not (transform.name == "Normalize" and len(sample) == 1):
            if transform.name == "Color" and len(sample) == 1:
                continue  # grey pictures have no colours, ours of one channel neither
            check_transform(transform, sample)


@pytest.mark.parametrize("fields", ["edge_index", "x edge_index", "x", "x edge_index edge_attr pos y group"])
def test_built_ins_pass_on_graphs_with_any_fields(fields):
    graph = molecule()
    sample = Data(**{key: graph[key] for key in fields.split()})
    if "x" not in sample:
        sample.num_nodes = graph.num_nodes
    for kind in BUILT_IN.values():
        if issubclass(kind, GraphTransform):
            check_transform(kind(0.4), sample)


def test_functions_that_draw_nothing_are_fine(photos):
    check_transform(at.wrap(negative, name="Negative"), photos)
    check_transform(at.wrap(scale_features, name="ScaleFeatures", takes="graph"), molecule())


def negative(picture):
    return 255 - picture


def scale_features(graph):
    """Needs features, and as many as the sample has."""
    graph.x = graph.x * torch.tensor([1.0, 2.0, 3.0])
    return graph


def test_policies_that_hold_ones_own_transforms_are_checked_whole(photos):
    fog = at.wrap(posterize_some, name="Some")
    check_transform(at.Tree().with_node(1, Chain([fog, Rotate(0.2)]), p=0.5), photos)


SCRIPT = """
import torch
import augtree as at

def fog(picture):
    return picture // 2 + int(torch.randint(100, ()))

print(len(at.testing.check_transform(at.wrap(fog, name="Fog"), torch.randint(0, 256, (3, 9, 9), dtype=torch.uint8))))
"""


@pytest.mark.parametrize("form", ["script", "stdin", "-c"])
def test_scripts_without_a_main_guard_work(tmp_path, form):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    arguments = {"script": [str(path)], "stdin": ["-"], "-c": ["-c", SCRIPT]}[form]
    done = subprocess.run([sys.executable, *arguments], input=SCRIPT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(len(CHECKS))]  # once


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ([1, 2], r"a sample must be a picture \(a tensor\) or a PyG graph, got list"),
        (torch.empty(0, 3, 8, 8, dtype=torch.uint8), "a sample must hold at least one picture"),
    ],
)
def test_a_sample_is_a_picture_or_a_graph(sample, message):
    with pytest.raises(InputError, match=message):
        check_transform(Invert(0.6), sample)


@pytest.mark.parametrize("thing", [negative, 3, at.Forest({"a": (at.Tree(), 1.0)})])
def test_only_transforms_are_checked(thing, photos):
    with pytest.raises(ArgumentError, match="transform must be a transform"):
        check_transform(thing, photos)
