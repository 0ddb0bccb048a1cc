"""Makes the pictures of docs/concepts.md: `python docs/make_pictures.py` (half a minute on one CPU thread).

tree.svg        a tree written by hand
forest.svg      the forest that a search finds for the demo's three groups of digits
sheet.png       some digits of each group, and what the forest makes of them
prediction.svg  the test of flips and turns in that search
trunk.svg       another search in time: its trunk and the cool-downs that branch off it
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor

import augtree as at
from augtree import demo
from augtree.data import Dataset
from augtree.report import augmented_rows, draw_sheet
from augtree.search.symmetries import Reoriented

OUT = Path(__file__).parent / "pictures"
INK, PALE, LINE = "#1f2933", "#5f6c7b", "#cbd2d9"
GREEN, RED, BLUE, ORANGE = "#2f855a", "#b7472a", "#2f6db3", "#c2701c"
FLIPS = {
    "Flip": ("flipped left-right", Reoriented(mirrored=(-1,))),
    "VerticalFlip": ("flipped up-down", Reoriented(mirrored=(-2,))),
    "QuarterTurn": ("turned by a quarter", Reoriented(quarters=1)),
}
DIGITS = {"upright": 4, "mirrored": 2, "turned": 7}
"""The digit that stands for each group."""
BORNE = at.search.Cooldown().borne


def main() -> None:
    """Make all pictures."""
    OUT.mkdir(exist_ok=True)
    write("tree.svg", written_by_hand().to_svg())
    data = demo.data()
    found = at.search_forest(data, demo.task(), seed=0, alpha=demo.ALPHA)
    examples = {group: example(data, group, digit) for group, digit in DIGITS.items()}
    write("forest.svg", found.forest.to_svg())
    write("prediction.svg", prediction_test(found.findings, examples))
    rows = [
        row
        for group, picture in examples.items()
        for row in augmented_rows(found.forest[group].tree, [(group, picture)], copies=7, seed=2)
    ]
    (OUT / "sheet.png").write_bytes(draw_sheet("A digit of each group, and what the forest makes of it", rows))
    write("trunk.svg", search_in_time(search_with_all_parts()))


def write(name: str, svg: str) -> None:
    """Keep a picture."""
    (OUT / name).write_text(svg)


def written_by_hand() -> at.Tree:
    """The tree that the README shows."""
    space = at.spaces.images(fill=0)
    return (
        at.Tree()
        .with_node(1, space["Rotate", 0.6], p=0.8)
        .with_node(2, space["ShearX", 0.8], p=0.6)
        .with_node(3, space["TranslateY", 0.4])
        .with_node(4, space["TranslateX", 0.4], p=0.5)
        .with_node(6, space["Brightness", 0.6], p=0.7)
    )


def example(data: Dataset, group: str, digit: int) -> Tensor:
    """The first training picture of a digit in a group."""
    rows = [int(i) for i in data.indices("train", group) if data.labels[i] == digit]
    picture: Tensor = data.samples[rows[0]]
    return picture


def search_with_all_parts() -> at.search.TreeResult:
    """A search with a look and several last cool-downs, which searches on images have only if they are asked for."""
    data = at.data.load("digits").few(demo.LABELS, demo.VALIDATION)
    scorer = at.search.Cooldown(looks=(0.6,), last=3)
    return at.search_tree(data, demo.task(), seed=0, budget=3, scorer=scorer)


# ---- the test of flips and turns -------------------------------------------------------------------------------

CELL, ROW, LEFT, TOP, SIDE, BAR = 250, 104, 96, 66, 48, 190


def prediction_test(findings: Sequence[Mapping[str, Any]], examples: Mapping[str, Tensor]) -> str:
    """A row for each group, a column for each flip: a sample before and after, and what the predictions keep."""
    kept = {finding["factor"]: finding["kept"] for finding in findings if "kept" in finding}
    marks = [text(LEFT + i * CELL, 34, name, 15, bold=True) for i, (name, _) in enumerate(FLIPS.values())]
    for i, (group, picture) in enumerate(examples.items()):
        marks.append(text(16, TOP + i * ROW + 28, group, 15, bold=True))
        for j, (factor, (_, flip)) in enumerate(FLIPS.items()):
            marks += cell(LEFT + j * CELL, TOP + i * ROW, picture, flip(picture[None])[0], kept[factor][group])
    return svg(LEFT + len(FLIPS) * CELL, TOP + len(examples) * ROW + 8, marks)


def cell(x: float, y: float, before: Tensor, after: Tensor, kept: float) -> Iterable[str]:
    """A sample, the sample flipped, and a bar for the share of its information that the model keeps."""
    colour, answer = (GREEN, "comes into play") if kept >= BORNE else (RED, "stays out")
    yield pixels(x, y, before)
    yield text(x + SIDE + 9, y + 29, "→", 17, PALE)
    yield pixels(x + SIDE + 34, y, after)
    yield text(x + 2 * SIDE + 44, y + 20, f"keeps {percent(kept)}", 13, colour, bold=True)
    yield text(x + 2 * SIDE + 44, y + 38, answer, 13, colour)
    yield box(x, y + SIDE + 10, BAR, 8, "#edf0f3")
    yield box(x, y + SIDE + 10, BAR * kept, 8, colour)
    yield line(x + BAR * BORNE, y + SIDE + 6, x + BAR * BORNE, y + SIDE + 22, INK)
    yield text(x + BAR * BORNE, y + SIDE + 33, percent(BORNE), 11, PALE, anchor="middle")


# ---- a search in time ------------------------------------------------------------------------------------------

START, TRAINING, TRUNK = 40, 500, 62
"""Where the trunk begins, how long a training is, and the height of the trunk, in pixels."""
LANES = {"test": (GREEN, 26, 3.0), "look": (ORANGE, 8, 1.6), "last": (BLUE, 34, 4.0)}
"""The colour of a kind of cool-downs, the distance between two, and their thickness."""


def search_in_time(result: at.search.TreeResult) -> str:
    """The trunk from left to right; cool-downs leave it downwards, each as long as it is."""
    training = demo.task().total_steps(0)
    kinds: dict[str, list[Mapping[str, Any]]] = {"test": [], "look": [], "last": []}
    for row in result.history:
        kinds["test" if "test" in row else "look" if "look" in row else "last"].append(row)
    end = place(kinds["last"][0]["at"])
    marks = [line(START, TRUNK, end, TRUNK, INK, 7)]
    marks += [text(START, TRUNK - 16, "trunk: one model at a constant learning rate", 14, bold=True)]
    bottom = 0.0
    for kind, rows in kinds.items():
        length = TRAINING * rows[0]["steps"] / training
        marks += branches(kind, place(rows[0]["at"]), length, len(rows))
        bottom = max(bottom, TRUNK + 20 + LANES[kind][1] * len(rows))
    marks += labels(kinds, len(result.members), training)
    marks += axis(bottom + 58, place(kinds["last"][0]["at"]) + TRAINING * kinds["last"][0]["steps"] / training)
    return svg(920, bottom + 96, marks)


def place(trainings: float) -> float:
    """Where a length of the trunk is in the picture."""
    return START + TRAINING * trainings


def branches(kind: str, x: float, length: float, count: int) -> Iterable[str]:
    """The cool-downs that leave the trunk at one place."""
    colour, distance, width = LANES[kind]
    for i in range(count):
        y = TRUNK + 20 + distance * (i + 0.5)
        bend = min(16.0, length)
        path = f"M{x:.0f} {TRUNK} C{x:.0f} {y:.0f} {x:.0f} {y:.0f} {x + bend:.0f} {y:.0f} H{x + length:.0f}"
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        yield f'<circle cx="{x + length:.0f}" cy="{y:.0f}" r="{width + 0.5}" fill="{colour}"/>'


def labels(kinds: Mapping[str, Sequence[Mapping[str, Any]]], averaged: int, training: int) -> Iterable[str]:
    """What the cool-downs are for."""
    test, look, last = (kinds[kind][0] for kind in ("test", "look", "last"))
    x = place(test["at"]) - 12
    yield text(x, TRUNK + 36, "a cool-down, and the", 13, GREEN, bold=True, anchor="end")
    yield text(x, TRUNK + 53, "test of flips and turns", 13, GREEN, bold=True, anchor="end")
    x = place(look["at"]) + TRAINING * look["steps"] / training + 14
    for i, words in enumerate(("a look:", f"{len(kinds['look'])} short", "cool-downs")):
        yield text(x, TRUNK + 50 + 17 * i, words, 13, ORANGE, bold=True)
    x = place(last["at"]) + TRAINING * last["steps"] / training + 14
    for i, row in enumerate(kinds["last"]):
        y = TRUNK + 42 + LANES["last"][1] * i
        yield text(x, y, f"cool-down {i + 1}: {percent(row['metric'], 1)} right", 13, BLUE, bold=True)
    y = TRUNK + 34 + LANES["last"][1] * len(kinds["last"])
    what = f"the average of {averaged} of them" if averaged > 1 else "the best of them"
    yield text(x, y + 8, "finished model:", 13, INK, bold=True)
    yield text(x, y + 25, what, 13, INK, bold=True)


def axis(y: float, end: float) -> Iterable[str]:
    """The time, in trainings of normal length."""
    yield line(START, y, end, y, LINE)
    for i in range(int((end - START) / TRAINING / 0.25) + 1):
        x = place(0.25 * i)
        yield line(x, y, x, y + 5, LINE)
        yield text(x, y + 20, f"{0.25 * i:g}", 12, PALE, anchor="middle")
    yield text(end + 14, y + 5, "trainings of normal length", 12, PALE)


# ---- marks -----------------------------------------------------------------------------------------------------


def svg(width: float, height: float, marks: Iterable[str]) -> str:
    """A picture on white."""
    body = "\n".join(marks)
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">'
    return f'{head}\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'


def text(
    x: float, y: float, words: str, size: float, colour: str = INK, *, bold: bool = False, anchor: str = "start"
) -> str:
    """Words."""
    style = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}"' + (' font-weight="600"' if bold else "")
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{words}</text>'


def percent(share: float, digits: int = 0) -> str:
    """A share as people read it."""
    return f"{100 * share:.{digits}f} %"


def line(x0: float, y0: float, x1: float, y1: float, colour: str, width: float = 1.5) -> str:
    """A straight line."""
    return f'<path d="M{x0:.0f} {y0:.0f} L{x1:.0f} {y1:.0f}" stroke="{colour}" stroke-width="{width}"/>'


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A filled rectangle."""
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.1f}" height="{height:.0f}" rx="3" fill="{colour}"/>'


def pixels(x: float, y: float, picture: Tensor) -> str:
    """A small grey picture, enlarged."""
    file = io.BytesIO()
    Image.fromarray(picture[0].numpy()).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    size = f'width="{SIDE}" height="{SIDE}" style="image-rendering: pixelated"'
    image = f'<image x="{x:.0f}" y="{y:.0f}" {size} href="data:image/png;base64,{data}"/>'
    return f'{image}<rect x="{x:.0f}" y="{y:.0f}" width="{SIDE}" height="{SIDE}" fill="none" stroke="{LINE}"/>'


if __name__ == "__main__":
    main()
