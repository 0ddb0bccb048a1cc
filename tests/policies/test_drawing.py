import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

import augtree as at
from augtree.policies.drawing import COLOURS, in_words, tree_in_words
from augtree.policies.presets import find
from augtree.transforms import (
    BUILT_IN,
    Chain,
    Color,
    Cutout,
    Flip,
    Identity,
    Invert,
    OneOf,
    PadCrop,
    QuarterTurn,
    RandAugment,
    RandTones,
    Rotate,
    Sharpness,
    TrivialAugment,
    VerticalFlip,
)

TREE = (
    at.Tree()
    .with_node(1, Rotate(0.6), p=0.7)
    .with_node(2, Color(0.4), p=0.3)
    .with_node(3, Sharpness(0.8))
    .with_node(5, Cutout(1.0), p=0.8)
)
FOREST = at.Forest({"photo <b>": (TREE, 0.4), "sketch & co": (at.Tree(), 0.6)})


def test_text():
    assert TREE.to_text() == (
        "Rotate(0.6)  applied to 70 %\n"
        "├─   30 % Color(0.4)\n"
        "│  ├─   20 % Identity\n"
        "│  └─   80 % Cutout(1)\n"
        "└─   70 % Sharpness(0.8)"
    )
    assert at.Tree().to_text() == "Identity (the empty tree)"
    assert FOREST.to_text().startswith("photo <b>  weight 0.4\nRotate(0.6)")
    assert FOREST.to_text().endswith("sketch & co  weight 0.6\nIdentity (the empty tree)")


@pytest.mark.parametrize(("child", "sibling"), [(2, 3), (3, 2)])
def test_a_sibling_to_which_nothing_is_left_is_not_drawn(child, sibling):
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.7).with_node(child, Color(0.4), p=1.0)
    deeper = tree.with_node(2 * child, Invert(1.0), p=0.5)
    assert tree.to_text() == "Rotate(0.6)  applied to 70 %\n└─  100 % Color(0.4)"
    assert deeper.to_text().splitlines()[2:] == ["   ├─   50 % Invert(1)", "   └─   50 % Identity"]
    assert f"-> {sibling} " not in tree.to_dot()
    assert "Identity" not in tree.to_dot()
    assert "Identity" not in tree.to_svg()
    assert "100 %" in tree.to_svg()
    own = tree.with_node(sibling, Invert(1.0))  # the user's own words stay
    assert "    0 % Invert(1)" in own.to_text()


def test_dot():
    dot = TREE.to_dot()
    assert '1 [label="Rotate(0.6)\\napplied to 70 %"];' in dot
    assert '1 -> 2 [label="30 %"];' in dot
    assert '4 [label="Identity", style="rounded,dashed"];' in dot
    assert dot.count("->") == 4
    quoted = at.Forest({'a"b\\': (at.Tree(), 1.0)}).to_dot()
    assert 'label="a\\"b\\\\ (weight 1)"' in quoted


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("policy", [TREE, FOREST, at.Tree()])
def test_graphviz_takes_it(policy):
    done = subprocess.run(["dot", "-Tsvg"], input=policy.to_dot(), text=True, capture_output=True, check=True)
    assert "<svg" in done.stdout


def boxes(svg):
    """Left and right end and top of every box, and the page's width and height."""
    root = ET.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    found = []
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        if rect.get("rx"):
            x, y = float(rect.get("x")), float(rect.get("y"))
            found.append((x, x + float(rect.get("width")), y, y + float(rect.get("height"))))
    return found, width, height


@pytest.mark.parametrize(
    "tree",
    [
        TREE,
        at.Tree(),
        at.Tree().with_node(1, Invert(0.6)),
        at.Tree({i: (Rotate(0.6), 0.5) for i in range(1, 32)}),
        at.Tree().with_node(1, Chain([Flip()] * 30)).with_node(3, Invert(0.6), p=0.5),
        at.Tree()
        .with_node(1, Invert(0.6))
        .with_node(2, Chain([Flip()] * 30), p=1.0)
        .with_node(4, Invert(0.6), p=0.1),
    ],
)
def test_boxes_of_a_picture_stand_apart_and_inside_the_page(tree):
    found, width, height = boxes(tree.to_svg())
    for left, right, top, bottom in found:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for i, one in enumerate(found):
        for other in found[i + 1 :]:
            assert one[2] != other[2] or one[1] < other[0] or other[1] < one[0]


def test_the_picture_says_what_the_tree_says():
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", TREE.to_svg())
    for name in (
        "Rotate",
        "Color",
        "Sharpness",
        "Cutout",
        "Identity",
        "applied to 70 %",
        "30 %",
        "70 %",
        "20 %",
        "80 %",
    ):
        assert name in texts
    assert texts.count("Identity") == 1


def test_names_are_escaped():
    svg = FOREST.to_svg()
    ET.fromstring(svg)
    assert "photo &lt;b&gt;, weight 0.4" in svg
    assert "<b>" not in svg


# ---- in words

EITHER = OneOf([RandAugment(), RandTones(m=14)])
USUAL = Chain([Flip(), PadCrop(4), EITHER])


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (Rotate(0.6), "Rotate(0.6)"),
        (RandAugment(m=14), "RandAugment(m=14)"),
        (Identity(), "Identity"),
        (EITHER, "RandAugment | RandTones(m=14) (50 % each)"),
        (OneOf([(RandAugment(), 3), RandTones()]), "RandAugment 75 % | RandTones 25 %"),
        (OneOf([Identity(), Flip(), Invert()]), "Identity | Flip | Invert(1) (33.3 % each)"),
        (OneOf([(Flip(), 7)]), "Flip"),
        (Chain([Flip()]), "Flip"),
        (Chain([(Flip(), 0.5)]), "Flip 50 %"),
        (Chain([Flip(), Invert()]), "Flip, then Invert(1)"),
        (USUAL, "Flip, PadCrop(4), then RandAugment | RandTones(m=14) (50 % each)"),
        (
            Chain([(Flip(), 0.5), (PadCrop(2), 0.5), TrivialAugment()]),
            "Flip 50 %, PadCrop(2) 50 %, then TrivialAugment",
        ),
        (
            OneOf([RandAugment(), Chain([RandAugment(), Cutout(1.0)])]),
            "RandAugment | RandAugment + Cutout(1) (50 % each)",
        ),
        (
            OneOf([Flip(), (Chain([(Flip(), 0.5), Invert()]), 3)]),
            "Flip 25 % | Chain(Flip p=0.5, Invert(1)) 75 %",
        ),
        (OneOf([Flip(), OneOf([Invert(), Flip()])]), "Flip | OneOf(Invert(1) 50 % | Flip 50 %) (50 % each)"),
        (Chain([]), "Chain()"),
        (at.wrap(abs, name="Fog"), "Fog"),
        (find("simclr"), "RandomCrop, ColorDistortion, then GaussianBlur 50 %"),
        (find("flip-crop-trivialaugment"), "Flip, PadCrop(4), then TrivialAugment"),
        (find("flip-crop"), "Flip, then PadCrop(4)"),
    ],
)
def test_transforms_in_words(transform, words):
    assert in_words(transform) == words
    assert tree_in_words(at.Tree().with_node(1, transform, p=1.0)) == (
        words if transform != Identity() else str(at.Tree())
    )


def test_trees_in_words():
    half = at.Tree().with_node(1, USUAL, p=0.5)
    assert tree_in_words(half) == f"{in_words(USUAL)}, on 50 % of the samples"
    assert tree_in_words(at.Tree()) == str(at.Tree())
    assert tree_in_words(TREE) == str(TREE)


def test_text_and_graphviz_have_the_same_words():
    tree = at.Tree().with_node(1, USUAL).with_node(2, EITHER, p=0.5)
    assert tree.to_text().splitlines()[0] == f"{in_words(USUAL)}  applied to 100 %"
    assert tree.to_text().splitlines()[1] == f"├─   50 % {in_words(EITHER)}"
    assert f'[label="{in_words(EITHER)}"];' in tree.to_dot()


def marks(svg, tag):
    return ["".join(mark.itertext()) for mark in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}" + tag)]


def test_a_box_has_all_of_its_words_as_its_title():
    long = Chain([Flip(), VerticalFlip(), QuarterTurn(), PadCrop(4), OneOf([RandAugment(m=m) for m in range(30)])])
    tree = at.Tree().with_node(1, long).with_node(2, Rotate(0.6), p=0.5)
    assert sorted(marks(tree.to_svg(), "title")) == [in_words(long), "Rotate(0.6)"]
    assert all(len(text) <= 60 for text in marks(tree.to_svg(), "text"))


def test_identity_has_no_title():
    assert marks(at.Tree().to_svg(), "title") == []
    assert len(marks(TREE.to_svg(), "title")) == len(TREE.nodes)


def test_steps_and_what_comes_then_stand_below_each_other():
    texts = marks(at.Tree().with_node(1, USUAL).to_svg(), "text")
    assert texts[:2] == ["Flip, PadCrop(4)", "then RandAugment | RandTones(m=14) (50 % each)"]
    texts = marks(at.Tree().with_node(1, EITHER).to_svg(), "text")
    assert texts[0] == "RandAugment | RandTones(m=14) (50 % each)"


def test_colours_are_for_transforms_that_there_are():
    assert not [name for name in COLOURS if name not in BUILT_IN]
    assert {"Flip", "VerticalFlip", "QuarterTurn", "PadCrop", "RandomCrop"} <= COLOURS.keys()
    assert COLOURS["VerticalFlip"] == COLOURS["Flip"] == COLOURS["RandGeometry"] == COLOURS["Rotate"]
    assert COLOURS["RandTones"] == COLOURS["TrivialTones"] == COLOURS["Color"]
