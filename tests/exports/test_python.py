"""Policies on pictures, exported for torch alone."""

import ast
import importlib
import re

import numpy as np
import pytest
import torch
from scipy.stats import chi2

import augtree as at
from augtree.exports.modules import python_source
from augtree.keys import Key
from augtree.policies.presets import NAMED
from augtree.transforms import (
    AutoAugment,
    Chain,
    Color,
    Flip,
    Invert,
    Normalize,
    OneOf,
    QuarterTurn,
    ResizedCrop,
    Rotate,
    SamplePairing,
    Sharpness,
    TrivialGeometry,
)
from support import pillow_reference as pillow
from support.exported import distribution, expected, noise, random_tree, run

HOSTILE = 'a"""\n{x}\\\'\u2028'


def policy_of(policy):
    """The exported policy, as an object."""
    return run(python_source(policy))["Policy"]()


def same_as_augtree(policy, pictures, **where):
    """Whether the exported policy gives the same bytes."""
    ours, theirs = policy_of(policy)(pictures, seed=5, **where), policy(pictures, seed=5, **where)
    return ours.dtype == theirs.dtype and torch.equal(ours, theirs)


# ---- the same pixels


@pytest.mark.parametrize(("channels", "height", "width"), [(3, 9, 14), (3, 11, 11), (1, 12, 7)])
@pytest.mark.parametrize("space", ["images", "simclr"])
def test_every_candidate_of_the_spaces_gives_the_same_bytes(space, channels, height, width):
    candidates = list(getattr(at.spaces, space)(composites=True, fill=77))
    policy = OneOf(candidates)
    pictures = noise(9 * len(candidates), channels, height, width)
    drawn = {str(steps[0]) for steps in policy.route(Key.of(5, range(len(pictures)))) if steps}
    assert drawn >= {str(candidate) for candidate in candidates[1:] if candidate.name != "Chain"}
    assert same_as_augtree(policy, pictures)


@pytest.mark.parametrize("size", [(8, 8), (6, 9)])
def test_the_default_space_of_searches_gives_the_same_bytes(size):
    data = at.data.from_arrays(noise(40, 3, *size), np.arange(40) % 2)
    space = at.spaces.auto(data)
    assert same_as_augtree(Chain([*space.basics, OneOf(list(space))]), noise(120, 3, *size))


@pytest.mark.parametrize("name", [name for name in NAMED if "graph" not in name])
def test_free_policies_give_the_same_bytes(name):
    assert same_as_augtree(NAMED[name](30), noise(40, 3, 10, 12))


@pytest.mark.parametrize("policy", ["svhn", "imagenet", "cifar10"])
def test_published_policies_give_the_same_bytes(policy):
    assert same_as_augtree(AutoAugment(policy), noise(90, 3, 8, 8))


@pytest.mark.parametrize("seed", range(4))
def test_trees_and_forests_give_the_same_bytes(seed):
    trees = [random_tree(seed + shift, levels=5, composites=True) for shift in (0, 50, 100)]
    forest = at.Forest({"a": (trees[0], 0.25), HOSTILE: (trees[1], 0.75), "none": (at.Tree(), 0.0)})
    pictures = noise(60, 3, 9, 9)
    assert same_as_augtree(trees[2], pictures)
    assert same_as_augtree(forest, pictures)
    assert same_as_augtree(forest, pictures, groups=["a", HOSTILE, "none"] * 20)
    inside = Chain([trees[0], (OneOf([trees[1], (Flip(), 3)]), 0.4), (TrivialGeometry(fill=3), 0)])
    assert same_as_augtree(at.Tree().with_node(1, inside, p=0.5), pictures)


def test_operations_do_what_pillow_does_with_the_same_value():
    policy = OneOf([kind(0.6) for kind in (Rotate, Color, Sharpness)])
    names = run(python_source(policy))
    for picture in pillow.pictures(3, 17, 20):
        for call, name, values in (
            ("rotate", "Rotate", (-30.0, 7.3, 90.0)),
            ("adjust_color", "Color", (0.1, 1.9)),
            ("adjust_sharpness", "Sharpness", (0.0, 1.37)),
        ):
            fill = (128,) if call == "rotate" else ()
            for value in values:
                theirs = pillow.operate(name, pillow.image(picture), value)
                assert torch.equal(names[call](picture, value, *fill), pillow.tensor(theirs))


def test_places_in_the_data_set_and_passes_over_it_are_kept():
    tree, pictures = random_tree(3), noise(8, 3, 8, 8)
    policy = policy_of(tree)
    whole = tree(pictures, seed=2, index=100, step=3)
    assert torch.equal(policy(pictures, seed=2, index=100, step=3), whole)
    assert torch.equal(policy(pictures[[5, 1]], seed=2, index=[105, 101], step=3), whole[[5, 1]])
    assert torch.equal(policy(pictures[4], seed=2, index=104, step=3), whole[4])
    assert not torch.equal(policy(pictures, seed=2, index=100, step=4), whole)


def test_unseeded_calls_draw_from_the_generator():
    tree, pictures = random_tree(3), noise(8, 3, 8, 8)
    policy, generator = policy_of(tree), torch.Generator().manual_seed(1)
    one, two = policy(pictures, generator=generator), policy(pictures, generator=generator)
    assert not torch.equal(one, two)
    assert torch.equal(policy(pictures, generator=torch.Generator().manual_seed(1)), one)
    torch.manual_seed(4)
    ours = policy(pictures)
    torch.manual_seed(4)
    assert torch.equal(ours, tree(pictures))


def test_floats_and_sizes_and_normalising():
    floats = torch.rand(50, 3, 9, 12, generator=torch.Generator().manual_seed(0))
    mean, std = (0.5, 0.4, 0.3), (0.1, 0.2, 0.3)
    assert same_as_augtree(Chain([(Rotate(1.0), 0.5), (Color(0.4), 0.5)]), floats)
    assert same_as_augtree(Chain([Flip(), (Rotate(1.0), 0.5), Normalize(mean, std)]), floats)
    many = Chain([Chain([ResizedCrop((7, 5)), QuarterTurn(), Sharpness(1.0)]), Normalize()])
    assert same_as_augtree(many, noise(20, 3, 9, 12))
    assert same_as_augtree(many, noise(20, 3, 9, 12).to(memory_format=torch.channels_last))


def test_a_policy_does_nothing_in_eval_mode():
    pictures = noise(3, 3, 6, 6)
    assert policy_of(Invert(1.0)).eval()(pictures) is pictures


# ---- the same distribution


@pytest.mark.parametrize("seed", range(12))
def test_the_code_of_a_tree_has_exactly_its_distribution(seed):
    tree = random_tree(seed, composites=seed % 2 == 1)
    found, wanted = distribution(run(python_source(tree))), expected(tree.paths())
    assert found.keys() == wanted.keys()
    assert list(found.values()) == pytest.approx([wanted[calls] for calls in found], abs=1e-12)
    assert sum(found.values()) == pytest.approx(1)


def test_the_code_of_a_forest_has_exactly_the_distribution_of_each_group_and_of_the_mixture():
    trees = {"photo": random_tree(20), "sketch": random_tree(21)}
    forest = at.Forest({"photo": (trees["photo"], 0.3), "sketch": (trees["sketch"], 0.7)})
    names = run(python_source(forest))
    for group, paths in [(None, forest.paths()), *((name, tree.paths()) for name, tree in trees.items())]:
        found, wanted = distribution(names, group), expected(paths)
        assert found.keys() == wanted.keys()
        assert list(found.values()) == pytest.approx([wanted[calls] for calls in found], abs=1e-12)


def test_samples_are_drawn_with_these_probabilities():
    tree = random_tree(1)
    names, wanted = run(python_source(tree)), expected(tree.paths())
    for calls in list(names):
        if calls in ("rotate", "adjust_color", "adjust_sharpness", "autocontrast", "keep_bits", "equalize_histogram"):
            names[calls] = lambda sample, *_, name=calls: (*sample, name)
    count = 4000
    drawn = [names["augment"]((), names["draws_of"](11, 0, index)) for index in range(count)]
    assert {*drawn} <= {*wanted}
    assert len(wanted) > 5
    statistic = sum((drawn.count(calls) - count * p) ** 2 / (count * p) for calls, p in wanted.items())
    assert statistic < chi2.ppf(0.999, len(wanted) - 1)


# ---- what it needs


def test_a_module_runs_from_a_file(tmp_path, monkeypatch):
    forest = at.Forest({"a": (random_tree(7), 0.5), "b": (random_tree(8), 0.5)})
    at.export(forest, to="python", out=tmp_path / "exported_forest.py")
    monkeypatch.syspath_prepend(tmp_path)
    policy = importlib.import_module("exported_forest").Policy()
    pictures = noise(6, 3, 8, 8)
    assert torch.equal(policy(pictures, list("ababbb"), seed=3), forest(pictures, groups=list("ababbb"), seed=3))


def test_a_module_has_only_what_its_policy_uses():
    source = python_source(at.Tree().with_node(1, Rotate(0.6), p=0.7))
    assert "def rotate(" in source
    for other in ("def adjust_color(", "def equalize", "def sobel", "def blend", "def normalized", "class Graphs"):
        assert other not in source
    defined = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert [name for name in defined if len(re.findall(rf"\b{name}\b", source)) == 1] == []
    assert len(source.splitlines()) < 250


def test_what_an_exported_policy_cannot_take_is_refused():
    policy = policy_of(at.Tree().with_node(1, Color(0.6), p=0.7))
    for pictures, message in (
        (torch.zeros(3, 8, dtype=torch.uint8), "pictures must be"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.int64), "must be uint8 or float"),
        (torch.full((2, 3, 8, 8), 2.0), r"must lie in \[0, 1\]"),
        (torch.zeros(2, 4, 8, 8), "must have 1 or 3 channels, got 4"),
    ):
        with pytest.raises(ValueError, match=message):
            policy(pictures)
    with pytest.raises(ValueError, match="an entry for each of the 2 pictures"):
        policy(torch.zeros(2, 3, 8, 8), index=[1, 2, 3])
    with pytest.raises(ValueError, match="a group must be one of a"):
        policy_of(at.Forest({"a": (random_tree(3), 1.0)}))(torch.zeros(2, 3, 8, 8), "b")


def test_an_empty_policy_returns_what_it_gets():
    for policy in (at.Tree(), at.transforms.Identity(), at.Forest({"a": (at.Tree(), 1.0)})):
        samples = object()
        assert policy_of(policy)(samples, "a", seed=1) is samples


def test_transforms_of_a_users_own_are_refused_by_name():
    fog = at.wrap(torch.flip, name="Fog")
    tree = at.Tree().with_node(1, Chain([Flip(), fog]), p=0.5).with_node(2, at.wrap(abs, name="Rain", magnitude=0.5))
    with pytest.raises(at.errors.ArgumentError, match=r"augtree's own transforms .* but has Fog, Rain\(0.5\)"):
        python_source(tree)
    with pytest.raises(at.errors.ArgumentError, match="SamplePairing and ResizedCrop"):
        python_source(Chain([ResizedCrop(8), SamplePairing(0.4)]))
