"""Data sets and tasks may be given by name, to every function that takes them."""

import inspect

import numpy as np
import pytest
from PIL import Image

import augtree as at
from augtree.errors import ArgumentError, DataError
from augtree.tasks.arguments import dataset_of, task_of

TAKERS = (at.search_tree, at.search_forest, at.fit_forest, at.compare, at.train, at.evaluate)


def test_a_value_stays_and_a_name_is_loaded(tmp_path):
    data, task = at.data.load("digits"), at.tasks.Classification(steps=3)
    assert (dataset_of(data), task_of(task)) == (data, task)
    for i in range(12):
        folder = tmp_path / "pets" / "ab"[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), i).save(folder / f"{i}.png")
    for path in (tmp_path / "pets", str(tmp_path / "pets")):
        assert dataset_of(path).classes == ("a", "b")
    assert task_of(None) == task_of("classification") == at.tasks.Classification()
    assert task_of("semisupervised") == at.tasks.SemiSupervised()


@pytest.mark.parametrize("function", TAKERS, ids=lambda function: function.__name__)
def test_every_function_takes_names_and_says_what_is_wrong(function):
    assert list(inspect.signature(function).parameters)[:2] == ["data", "task"]
    digits = at.data.load("digits")
    with pytest.raises(DataError, match="source must be a folder, a zip file or one of digits, .* got 'digit'"):
        function("digit")
    with pytest.raises(ArgumentError, match="data must be a data set, or the name or path of one"):
        function(np.zeros((4, 8, 8)))
    with pytest.raises(ArgumentError, match=r"task must be one of .*\(did you mean classification\?\)"):
        function(digits, "clasification")
    with pytest.raises(ArgumentError, match="task must be a task, such as .*, or one of the names"):
        function("digits", at.tasks.Classification)


def test_a_search_of_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(40):
        folder = tmp_path / "pets" / "ab"[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save(folder / f"{i}.png")
    short = at.tasks.Classification(model="cnn", steps=2, options={"width": 2}, device="cpu")
    assert at.search_tree(str(tmp_path / "pets"), short, [at.transforms.Flip()], budget=1).tree.domain == "image"
