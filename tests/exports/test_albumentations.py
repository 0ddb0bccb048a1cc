"""Policies exported as Albumentations pipelines: the same probabilities; refusals are tested everywhere."""

import ast
import importlib.util
import os
from collections import defaultdict

import numpy as np
import pytest
import torch
from scipy.stats import chi2

import augtree as at
from augtree.exports.albumentations import albumentations_source, posterized, solarized
from augtree.transforms import (
    Chain,
    ColorDistortion,
    Cutout,
    Flip,
    GaussianBlur,
    GaussianNoise,
    Invert,
    Normalize,
    OneOf,
    PadCrop,
    Posterize,
    QuarterTurn,
    RandAugment,
    RandomCrop,
    Rotate,
    Rotation,
    SamplePairing,
    Sharpness,
    ShearX,
    Solarize,
    TrivialTones,
    VerticalFlip,
    kernels,
)
from support.exported import noise, run

INSTALLED = importlib.util.find_spec("albumentations") is not None
needs_albumentations = pytest.mark.skipif(not INSTALLED, reason="Albumentations is not installed (make test-exports)")
os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
ONE_TO_ONE = {"InvertImg": Invert(), "HorizontalFlip": Flip(1.0), "VerticalFlip": VerticalFlip(1.0)}
NAMES = {**{str(value): name for name, value in ONE_TO_ONE.items()}}


# ---- structure, from the code alone


def ways(node):
    """What a part of a pipeline does when it is called, from its code: names of transforms with probabilities."""
    name, keywords = node.func.attr, {keyword.arg: keyword.value for keyword in node.keywords}
    p = ast.literal_eval(keywords.get("p", ast.Constant(1.0)))
    return [(p * q, calls) for q, calls in forced(node, name)] + ([(1 - p, ())] if p < 1 else [])


def forced(node, name):
    """What it does when it is applied: OneOf applies what it chooses, Sequential asks each of its parts."""
    if name in ("Sequential", "Compose"):
        out = [(1.0, ())]
        for child in node.args[0].elts:
            out = [(p * q, calls + more) for p, calls in out for q, more in ways(child)]
        return out
    if name == "OneOf":
        shares = [share(child) for child in node.args[0].elts]
        parts = zip(node.args[0].elts, shares, strict=True)
        return [(s / sum(shares) * q, calls) for child, s in parts for q, calls in forced(child, child.func.attr)]
    return [(1.0, () if name == "NoOp" else (name,))]


def share(node):
    return next(ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg == "p")


def distribution(source, function="policy"):
    """The distribution over sequences of transforms of one function of a module."""
    definition = next(d for d in ast.parse(source).body if isinstance(d, ast.FunctionDef) and d.name == function)
    found = defaultdict(float)
    for p, calls in ways(definition.body[-1].value):
        found[calls] += p
    return {calls: p for calls, p in found.items() if p > 1e-15}


def wanted(paths):
    found = defaultdict(float)
    for p, path in paths:
        found[tuple(NAMES[str(transform)] for transform in path)] += p
    return dict(found)


def small_tree(seed, levels=4):
    """A tree of three transforms that have one counterpart each."""
    rng, tree = np.random.default_rng(seed), at.Tree()
    for index in range(1, 2**levels):
        if index == 1 or (index // 2 in tree.nodes and rng.random() < 0.75):
            sibling = tree.nodes.get(index ^ 1) if index > 1 else None
            p = rng.choice([0.0, 1.0, rng.random(), rng.random()]) if sibling is None else 1 - sibling.p
            tree = tree.with_node(index, list(ONE_TO_ONE.values())[rng.integers(3)], p=float(p))
    return tree


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_has_exactly_its_distribution(seed):
    tree = small_tree(seed)
    found, right = distribution(albumentations_source(tree)), wanted(tree.paths())
    assert found.keys() == right.keys()
    assert list(found.values()) == pytest.approx([right[calls] for calls in found], abs=1e-9)


def test_composites_have_exactly_their_distribution():
    invert, flip = Invert(), Flip(0.3)
    policy = Chain([(invert, 0.2), (flip, 0.5), OneOf([(flip, 3), VerticalFlip(1.0)]), (invert, 0)])
    found = distribution(albumentations_source(policy))
    flips = {(): 0.75 * 0.7, ("HorizontalFlip",): 0.75 * 0.3, ("VerticalFlip",): 0.25}
    right = defaultdict(float)
    for p, first in ((0.2, ("InvertImg",)), (0.8, ())):
        for q, second in ((0.15, ("HorizontalFlip",)), (0.85, ())):
            for third, r in flips.items():
                right[first + second + third] += p * q * r
    assert found == pytest.approx(dict(right), abs=1e-12)


def test_a_forest_has_a_pipeline_for_each_group_and_one_for_the_mixture():
    forest = at.Forest({'a"b': (small_tree(1), 0.3), "c": (small_tree(2), 0.7), "d": (at.Tree(), 0.0)})
    source = albumentations_source(forest)
    assert distribution(source) == pytest.approx(wanted(forest.paths()), abs=1e-9)
    for i, member in enumerate(forest.groups.values()):
        assert distribution(source, f"tree_{i}") == pytest.approx(wanted(member.tree.paths()), abs=1e-9)


def test_numbers_of_bits_have_the_shares_of_the_levels():
    levels = np.linspace(0.2, 0.4, 100001)[1:]
    bits, counts = np.unique(np.rint(4 * levels), return_counts=True)
    shares = {
        (8 - int(elements[0].arguments["num_bits"][0]) if elements else 0): s for elements, s in posterized(0.8, 1.6)
    }
    assert {int(b): c / len(levels) for b, c in zip(bits, counts, strict=True)} == pytest.approx(
        {b: s for b, s in shares.items() if s > 0}, abs=1e-4
    )


def test_thresholds_from_0_on_are_the_negative():
    element = solarized(0.0, 51.2)
    assert [child.name for child in element.children] == ["InvertImg", "Solarize"]
    assert [child.p for child in element.children] == pytest.approx([1 / 51.2, 50.2 / 51.2])
    assert solarized(51.2, 102.4).arguments["threshold_range"] == pytest.approx((50.2 / 255, 101.4 / 255))


def test_what_albumentations_has_not_is_refused_by_name():
    tree = at.Tree().with_node(1, ShearX(0.6), p=0.5).with_node(2, Rotate(0.2), p=0.5).with_node(3, Cutout(0.4))
    message = r"Albumentations has, but it has no ShearX\(0.6\), Cutout\(0.4\)$"
    with pytest.raises(at.errors.ArgumentError, match=message):
        albumentations_source(tree)
    for step, name in (
        (SamplePairing(0.2), r"SamplePairing\(0.2\)"),
        (Sharpness(0.2), r"Sharpness\(0.2\)"),
        (RandomCrop(), "RandomCrop"),
        (Chain([Flip(), RandAugment(m=5)]), r"RandAugment\(m=5\) \(ShearX, ShearY, Sharpness\)"),
        (TrivialTones(), r"TrivialTones \(Sharpness\)"),
        (at.wrap(abs, name="Fog"), "Fog"),
        (at.transforms.DropNodes(0.2), r"DropNodes\(0.2\)"),
    ):
        with pytest.raises(at.errors.ArgumentError, match=f"it has no {name}$"):
            albumentations_source(step)


# ---- pipelines that run


def pipeline(policy, seed=0):
    return run(albumentations_source(policy), allowed=("albumentations", "cv2"))["policy"](seed)


def applied(policy, pictures, seed=0):
    """A pipeline on pictures [n,C,H,W]."""
    augment = pipeline(policy, seed)
    done = [augment(image=picture.permute(1, 2, 0).numpy())["image"] for picture in pictures]
    return torch.from_numpy(np.stack(done)).permute(0, 3, 1, 2)


@needs_albumentations
def test_samples_are_drawn_with_these_probabilities():
    tree = small_tree(7)
    picture = torch.tensor([[[[10, 200], [60, 120]]]] * 3000, dtype=torch.uint8)
    effects = {(): picture[0]}
    for names in wanted(tree.paths()):
        done = picture[:1]
        for name in names:
            done = ONE_TO_ONE[name](done, seed=0)
        effects[names] = done[0]
    right = defaultdict(float)
    for names, p in wanted(tree.paths()).items():
        right[tuple(effects[names].flatten().tolist())] += p
    drawn = [tuple(row.flatten().tolist()) for row in applied(tree, picture)]
    assert {*drawn} == {*right}
    assert len(right) > 3
    statistic = sum((drawn.count(row) - 3000 * p) ** 2 / (3000 * p) for row, p in right.items())
    assert statistic < chi2.ppf(0.999, len(right) - 1)


@needs_albumentations
@pytest.mark.parametrize("magnitude", [0.2, 0.4, 0.6, 0.8, 1.0])
def test_every_candidate_that_has_a_counterpart_runs(magnitude):
    space, pictures = at.spaces.images(), noise(3, 3, 12, 12)
    for candidate in space:
        if candidate.magnitude == magnitude and candidate.name not in (
            *("ShearX", "ShearY", "Sharpness", "Cutout", "SamplePairing"),
        ):
            assert applied(candidate, pictures).shape == pictures.shape


@needs_albumentations
@pytest.mark.parametrize("magnitude", [0.2, 0.4, 0.6, 0.8, 1.0])
@pytest.mark.parametrize("kind", [Solarize, Posterize])
def test_parameters_are_drawn_with_the_same_probabilities(kind, magnitude):
    ramp = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).repeat(2000, 1, 1, 1)
    ours, theirs = (
        np.unique(done.flatten(1).numpy(), axis=0, return_counts=True)
        for done in (kind(magnitude)(ramp, seed=0), applied(kind(magnitude), ramp))
    )
    found, expected = ({row.tobytes(): n for row, n in zip(*each, strict=True)} for each in (theirs, ours))
    rows = {*found, *expected}
    counts = np.array([[each.get(row, 0) for row in rows] for each in (found, expected)], float)
    statistic = ((counts[0] - counts[1]) ** 2 / counts.sum(0)).sum()
    assert statistic <= (chi2.ppf(0.999, len(rows) - 1) if len(rows) > 1 else 0)


@needs_albumentations
def test_pixels_are_the_same_where_the_operation_is():
    pictures = noise(30, 3, 13, 13)
    assert torch.equal(applied(Invert(), pictures), Invert()(pictures))
    assert torch.equal(applied(Flip(1.0), pictures), pictures.flip(3))
    assert torch.equal(applied(VerticalFlip(1.0), pictures), pictures.flip(2))
    for policy in (QuarterTurn(), Rotation(), PadCrop(2, fill=9)):
        one = pictures[:1].expand(400, -1, -1, -1)
        ours, theirs = (
            {row.numpy().tobytes() for row in done} for done in (policy(one, seed=0), applied(policy, one))
        )
        assert ours == theirs


@needs_albumentations
@pytest.mark.parametrize(
    ("arguments", "kernel", "value", "most"),
    [
        ({"brightness": (1.3, 1.3)}, kernels.brightness, 1.3, 0),
        ({"contrast": (0.4, 0.4)}, kernels.contrast, 0.4, 1),
        ({"saturation": (1.9, 1.9)}, kernels.color, 1.9, 2),
    ],
)
def test_values_differ_by_rounding_alone(arguments, kernel, value, most):
    import albumentations

    neutral = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0)}
    jitter = albumentations.ColorJitter(**{**neutral, **arguments}, p=1)
    pictures = noise(10, 3, 12, 12)
    done = np.stack([jitter(image=picture.permute(1, 2, 0).numpy())["image"] for picture in pictures])
    ours = kernel(pictures, torch.full((10,), value)).permute(0, 2, 3, 1).numpy()
    assert np.abs(done.astype(int) - ours).max() <= most


@needs_albumentations
def test_noise_blur_and_normalising():
    grey = torch.full((4, 3, 100, 100), 128, dtype=torch.uint8)
    deviations = applied(GaussianNoise((0.05, 0.05)), grey).float().std((1, 2, 3))
    assert deviations.tolist() == pytest.approx([0.05 * 255] * 4, rel=0.05)
    smooth = torch.nn.functional.interpolate(noise(4, 3, 6, 6).float(), 48, mode="bilinear").to(torch.uint8)
    blurred = applied(GaussianBlur((1.0, 1.0)), smooth).int() - GaussianBlur((1.0, 1.0))(smooth, seed=0).int()
    assert blurred.abs().float().mean() < 1
    both = Chain([Flip(1.0), Normalize((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))])
    torch.testing.assert_close(applied(both, smooth), both(smooth, seed=0), atol=1e-4, rtol=1e-4)
    assert applied(ColorDistortion(), smooth).shape == smooth.shape
