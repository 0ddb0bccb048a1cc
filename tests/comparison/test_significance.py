"""The signed-rank test over data sets, against every assignment of signs."""

import json
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

import augtree as at
from augtree.comparison.significance import SignedRank, Significance, means_of, signed_rank, significance
from augtree.errors import ArgumentError, RunError


def by_counting(differences):
    """The share of all assignments of signs whose rank sum is as far from its middle as this one's."""
    ranks = rankdata(np.abs(differences))
    middle = ranks.sum() / 2
    seen = abs(ranks[differences > 0].sum() - middle)
    sums = [abs(ranks[np.array(signs)].sum() - middle) for signs in product((False, True), repeat=len(ranks))]
    return np.mean([each >= seen - 1e-9 for each in sums])


@pytest.mark.parametrize("seed", range(5))
def test_p_is_the_share_of_signs_that_are_as_extreme(seed):
    differences = np.random.default_rng(seed).normal(0.5, 1, 8)
    found = signed_rank("other", differences)
    assert found.p == pytest.approx(by_counting(differences))
    assert (found.data_sets, found.better_on) == (8, (differences > 0).sum())
    assert found.difference == pytest.approx(differences.mean())


def test_equal_results_are_left_out():
    found = signed_rank("other", np.array([0.0, 1.0, 2.0, 3.0]))
    assert found == SignedRank("other", 3, 3, 1.5, pytest.approx(by_counting(np.array([1.0, 2.0, 3.0]))))
    assert signed_rank("other", np.zeros(3)) == SignedRank("other", 0, 0, 0.0, 1.0)


def saved(folder, name, values, metric="accuracy"):
    """A finished comparison as its folder keeps it; a value for each policy and seed."""
    folder.mkdir()
    rows = [{"policy": p, "seed": s, "test": v} for p, each in values.items() for s, v in enumerate(each)]
    content = {"metric": metric, "judged_on": "test", "rows": rows}
    (folder / "comparison.json").write_text(json.dumps(content))
    (folder / "spec.json").write_text(json.dumps({"version": 1, "kind": "compare", "data": {"name": name}}))
    return folder


@pytest.fixture
def folders(tmp_path):
    """Six data sets, on all of which the search is 0.1 better than none."""
    each = [
        saved(
            tmp_path / str(i),
            f"set {i}",
            {"none": [0.5 + i / 100, 0.52 + i / 100], "search": [0.61 + i / 90], "x": [0.1]},
        )
        for i in range(5)
    ]
    return [*each, saved(tmp_path / "5", "set 5", {"none": [0.5], "search": [0.7]})]


def test_rows_that_all_have_are_compared(folders):
    found = significance(folders)
    assert (found.method, found.metric, len(found.data_sets)) == ("search", "accuracy", 6)
    (row,) = found.rows  # x is not in all of them
    assert (row.policy, row.data_sets, row.better_on, row.p) == ("none", 6, 6, pytest.approx(2 / 2**6))
    assert "no p can be below" not in found.to_text()
    other = significance(folders, "none").rows[0]
    assert (other.policy, other.better_on, other.difference) == ("search", 0, pytest.approx(-row.difference))
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["p"] == row.p


def test_with_few_data_sets_the_least_p_is_told(folders):
    assert significance(folders[:3]).to_text().endswith("With so few data sets no p can be below 0.2500.")


def test_a_lower_loss_is_better(tmp_path):
    folders = [saved(tmp_path / str(i), str(i), {"none": [2.0], "forest": [1.0 + i / 10]}, "loss") for i in range(3)]
    (row,) = significance(folders).rows
    assert (row.better_on, row.difference) == (3, pytest.approx(0.9))


def test_a_row_with_a_failed_training_is_left_out():
    rows = [{"policy": "a", "test": 0.5}, {"policy": "b", "failed": "no"}, {"policy": "b", "test": 0.4}]
    assert means_of({"judged_on": "test", "rows": rows}) == {"a": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: significance(f[:1]), "comparisons must be two or more"),
        (lambda f: significance([f[0], f[0]]), "must be of different data sets, but two are of set 0"),
        (lambda f: significance(f, "x"), r"method must be a row of all comparisons \(none, search\), got 'x'"),
        (lambda f: significance([*f, saved(f[0].parent / "l", "l", {"none": [1.0]}, "loss")]), "the same metric"),
        (lambda f: significance([*f, saved(f[0].parent / "n", "n", {"y": [1.0]})]), "there is none"),
        (lambda f: significance([*f, saved(f[0].parent / "o", "o", {"none": [1.0]})]), "two rows in common"),
    ],
)
def test_what_cannot_be_compared(folders, change, message):
    with pytest.raises(ArgumentError, match=message):
        change(folders)


def test_a_folder_without_a_comparison(folders, tmp_path):
    with pytest.raises(RunError, match="must be the folder of a finished comparison"):
        significance([*folders, tmp_path])


def test_comparisons_as_they_are_saved(tmp_path):
    task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=5, batch_size=16)
    for i in range(2):
        data = at.data.load("digits", train=60, val=60)
        data = at.data.from_arrays(
            data.samples.numpy(),
            data.labels.numpy(),
            split=[("train", "val", "test")[k] for k in data.split],
            name=f"d{i}",
        )
        at.compare(data, task, {"none": None, "ta": "trivialaugment"}, seeds=2, out=tmp_path / str(i))
    found = significance([tmp_path / "0", tmp_path / "1"])
    assert (found.method, list(found.data_sets)) == ("ta", ["d0", "d1"])
    assert isinstance(found, Significance)
