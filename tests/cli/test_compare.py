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
