"""`augtree compare` with methods by name."""

import pytest

from augtree.baselines.catalogue import listing, names
from augtree.errors import AugtreeError
from support.commands import QUICK, invoke, last

DIGITS = ["digits", "--train", 60, "--val", 40]


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


@pytest.mark.parametrize("data", [[], ["digits"]])
def test_the_list_says_what_each_name_is(data):
    text = invoke("compare", *data, "--list").stdout
    for name in names():
        assert f"\n{name}: " in f"\n{text}"
    assert "needs two groups or more" in text
    assert last(invoke("compare", "--list", "--json")) == {"methods": json_of(listing())}
    assert last(invoke("compare", "--json", "--list")) == {"methods": json_of(listing())}


def json_of(entries):
    """Tuples as lists."""
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in entry.items()} for entry in entries]


def test_methods_are_compared_by_name(tmp_path):
    command = ["compare", *DIGITS, "none", "Mixup", "cutmix", *QUICK, "--seeds", 1, "--out", tmp_path, "--json"]
    found = last(invoke(*command))
    assert [row["policy"] for row in found["rows"]] == ["none", "Mixup", "cutmix"]
    assert all(row["cost"] >= 1 for row in found["rows"])
    assert last(invoke("resume", tmp_path, "--json"))["rows"] == found["rows"]


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        (["cutmx"], r"there is no such file, and the names are none, .*did you mean cutmix\?"),
        (["none", "lisa"], r"policies/lisa must have training samples of two groups or more .*, got \['all'\]"),
    ],
)
def test_what_cannot_be_compared_is_refused(policies, words, tmp_path):
    with pytest.raises(AugtreeError, match=words):
        invoke("compare", *DIGITS, *policies, *QUICK, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_finished_comparisons_are_tested_over_data_sets(tmp_path):
    folders = [tmp_path / str(seed) for seed in range(2)]
    for i, folder in enumerate(folders):
        data = ["digits", "--train", 60 + i, "--val", 60]
        invoke("compare", *data, "none", "trivialaugment", *QUICK, "--seeds", 1, "--out", folder)
    done = invoke("compare", "--significance", *folders, "--json")
    assert "trivialaugment against ..., 2 data sets, accuracy:" in done.stderr
    assert last(done)["rows"][0]["policy"] == "none"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
    with pytest.raises(AugtreeError, match="must be two or more, of different data sets"):
        invoke("compare", "--significance", folders[0])
