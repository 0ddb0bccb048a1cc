from types import SimpleNamespace

import pytest

import augtree as at
from augtree.cli.options import scorer_by_name
from augtree.cli.values import parse, policies_by_name, space_by_name
from augtree.errors import AugtreeError


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("3", int, 3),
        ("1e3", int | None, 1000),
        ("0.5", float | None, 0.5),
        ("no", bool, False),
        ("90m", str | float | None, "90m"),
        ("a,b", tuple[str, ...], ("a", "b")),
    ],
)
def test_texts_become_what_a_field_has(text, hint, value):
    found = parse("x", text, hint)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "hint", "message"),
    [
        ("1.5", int, "x must be a whole number, got '1.5'"),
        ("inf", int, "x must be a whole number, got 'inf'"),
        ("many", float, "x must be a number, got 'many'"),
        ("perhaps", bool, "x must be one of true, yes"),
    ],
)
def test_other_texts_are_refused(text, hint, message):
    with pytest.raises(AugtreeError, match=message):
        parse("x", text, hint)


def test_scorer_options_are_read_by_kind():
    scorer = scorer_by_name("cooldown", ["looks=0.2,0.4", "last=3", "cool=0.3", "tests=none"])
    assert scorer.tests == ()
    assert (scorer.looks, scorer.last, scorer.cool) == ((0.2, 0.4), 3, 0.3)
    assert scorer_by_name("density", ["rule=entropy"]).rule == "entropy"
    assert scorer_by_name("density", ["train=0.5"]).train == 0.5
    for bad in ("looks", "nothing=1", "last=1.5", "last=many", "rule=x"):
        with pytest.raises(AugtreeError, match="must"):
            scorer_by_name("density" if "rule" in bad else "cooldown", [bad])


def test_policies_get_short_names(tmp_path):
    assert policies_by_name(["none", "TrivialAugment", "a/tree.json", "b/tree.json", "best.json"]) == {
        "none": "none",
        "TrivialAugment": "trivialaugment",
        "a/tree": "a/tree.json",
        "b/tree": "b/tree.json",
        "best": "best.json",
    }
    with pytest.raises(AugtreeError, match="two of one name"):
        policies_by_name(["a/tree.json", "x/a/tree.json"])


def test_spaces_by_name_are_as_they_are_for_the_data():
    pictures = SimpleNamespace(domain="image", fill=7)
    graphs = SimpleNamespace(domain="graph")
    assert space_by_name("images", pictures) == at.spaces.images(fill=7)
    assert space_by_name("images+composites", pictures) == at.spaces.images(composites=True, fill=7)
    assert space_by_name("auto", pictures) is None
    assert space_by_name("simclr", pictures) == at.spaces.simclr()
    assert space_by_name("simclr+composites", pictures) == at.spaces.simclr(composites=True, fill=7)
    assert space_by_name("graphs", graphs) == at.spaces.graphs()
    assert space_by_name("graphs+composites", graphs) == at.spaces.graphs(composites=True)
