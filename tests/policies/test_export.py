import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

import augtree as at
from augtree.transforms import Chain, Color, Cutout, Flip, Invert, Rotate, Sharpness

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
