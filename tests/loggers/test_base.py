"""What a logger is handed, from runs of every kind."""

import re

import pytest
import torch

import augtree as at
from augtree.loggers.base import SAMPLES, VERSIONS, flat, pictures_of
from augtree.runs.events import RowTrained, figure_name
from augtree.search.factorial import Effect
from augtree.search.scorers.base import Scored
from augtree.search.trunk_events import CooledDown, FactorTested, Finding
from augtree.transforms import Invert, Normalize
from support.blobs import blobs

GROUPS = ["ab"[i // 2 % 2] for i in range(80)]
TASK = at.tasks.Classification(model="cnn", options={"width": 2}, steps=40, batch_size=16)


class Kept(at.loggers.Logger):
    def __init__(self):
        super().__init__()
        self.numbers, self.texts, self.pictures, self.options = {}, {}, {}, {}

    def log_numbers(self, numbers, step):
        for name, value in numbers.items():
            self.numbers.setdefault(name, []).append((step, value))

    def log_options(self, options):
        self.options |= options

    def log_text(self, name, text, step):
        self.texts.setdefault(name, []).append(text)

    def log_picture(self, name, picture, step):
        self.pictures.setdefault(name, []).append((step, picture))


def test_the_log_of_a_forest():
    log = Kept()
    data = blobs(groups=GROUPS)
    found = at.search_forest(data, TASK, [Invert(1.0)], alpha=10, eta=0.5, watch=log)
    steps, losses = zip(*log.numbers["training/loss"], strict=True)
    assert list(steps) == sorted(set(steps))
    assert all(0 < loss < 5 for loss in losses)
    for group in "ab":
        assert [value for _, value in log.numbers[f"weights/{group}"]] == [row["w"][group] for row in found.history]
        at_steps = [step for step, _ in log.numbers[f"weights/{group}"]]
        assert at_steps == sorted(set(at_steps))
        assert 40 < at_steps[-1] < 80  # after the trunk, and within the steps of the search
    assert log.numbers["result/val/average"][0][1] == found.average("val")
    assert set(log.pictures) == {f"policy/{group}" for group in "ab"}
    assert log.options["kind"] == "forest"
    assert log.options["task/steps"] == 40
    assert log.texts["result"] == [f"{found.to_text()}\n\n{found.verdict()}"]
    assert any(text.startswith("Plan: ") for text in log.texts["log"])


def test_the_searches_of_groups_are_apart():
    log = Kept()
    options = {"method": "paper", "depth": 1, "probabilities": [1.0], "alpha": 10}
    at.search_forest(blobs(groups=GROUPS), TASK, [Invert(1.0)], **options, watch=log)
    assert {"a/nodes/1/gain", "b/nodes/1/gain", "a/nodes/1/Invert_1", "training/loss", "weights/a"} <= {*log.numbers}
    assert "nodes/1/gain" not in log.numbers


def test_a_comparison_is_counted_in_trainings():
    log = Kept()
    table = at.compare(blobs(), TASK, {"none": None, "Invert!": Invert(1.0)}, seeds=2, watch=log)
    rows = {(row["policy"], row["seed"]): row["test"] for row in table.rows}
    assert log.numbers["comparison/test/none"] == [(1, rows["none", 0]), (2, rows["none", 1])]
    assert log.numbers["comparison/test/Invert"] == [(3, rows["Invert!", 0]), (4, rows["Invert!", 1])]


def test_a_logged_run_is_the_same_to_the_byte(tmp_path):
    def files(name, **more):
        at.search_tree(blobs(), TASK, [Invert(1.0)], out=tmp_path / name, **more)
        names = ("tree.json", "model.safetensors", "spec.json", "mixture.json")
        return [(tmp_path / name / file).read_bytes() for file in names]

    assert files("logged", watch=Kept()) == files("silent")


FINDING = Finding(0, 0.6, "Flip", Effect(0.25, 0.05), {"a b": Effect(0.5, 0.1)}, (), {})
LOGGED = [
    (FactorTested(FINDING, False), {"findings/Flip/harm": 0.25}),
    (FactorTested(FINDING, True), {"findings/Flip/harm": 0.25, "findings/Flip/harm/a_b": 0.5}),
    (CooledDown("mixture", 0.5, 10, 0), {"look-1/mixture": 0.5}),
    (CooledDown("mixture", 0.5, 10, None), {"cool-downs/mixture": 0.5}),
    (CooledDown("mixture", 0.5, 10, None, 0), {}),
    (Scored(3, "Rotate(0.2)", 0.5), {"nodes/3/Rotate_0.2": 0.5}),
    (Scored(3, "Rotate(0.2)"), {}),
    (RowTrained("mine", 0, {"val": 0.5, "worst_group": None, "tree": "Tree()"}), {"comparison/val/mine": 0.5}),
    (RowTrained("mine", 0, {}, "it diverged"), {}),
]


@pytest.mark.parametrize(("event", "logged"), LOGGED, ids=lambda each: type(each).__name__)
def test_the_figures_of_an_event(event, logged):
    assert dict(event.logged()) == logged


@pytest.mark.parametrize("part", ["../../etc", "a/b", "", "<script>", "x" * 1000, "\n", "é 日本", "."])
def test_the_names_of_figures_are_safe(part):
    assert re.fullmatch(r"weights(/[\w-][\w.-]{0,99})?", figure_name("weights", part))


def test_options_are_short_values():
    spec = {"a": {"b": 1, "c": None, "d": [1, 2]}, "e": True, "f": "x" * 251, "g": "x" * 250}
    assert flat(spec) == {"a/b": 1, "e": True, "g": "x" * 250}


def test_a_sheet_has_the_samples_and_their_versions():
    data = blobs()
    sheet = pictures_of(Invert(1.0), data)
    side = data.samples.shape[-1]
    assert sheet.shape == (3, SAMPLES * side, (1 + VERSIONS) * side)
    for number, row in enumerate(data.indices("train")[:SAMPLES]):
        line = sheet[:, number * side : (number + 1) * side]
        assert torch.equal(line[:, :, :side], data.samples[int(row)].expand(3, -1, -1))
        for column in range(1, 1 + VERSIONS):
            assert torch.equal(line[:, :, column * side : (column + 1) * side], 255 - line[:, :, :side])
    grouped = blobs(groups=GROUPS)
    first = grouped.samples[int(grouped.indices("train", "b")[0])]
    assert torch.equal(pictures_of(at.Tree(), grouped, "b")[:, :side, :side], first.expand(3, -1, -1))


def test_what_makes_no_pictures_is_not_shown():
    assert pictures_of(Normalize(mean=(0.5,), std=(0.5,)), blobs()) is None
