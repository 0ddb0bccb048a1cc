"""The options of a search."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from augtree.errors import ArgumentError, RunError
from augtree.search import Cooldown, Density, Retrain, SearchOptions
from augtree.search.options import H, parse_budget, resolve_scorer, restore_scorer
from augtree.search.scorers import SCORERS

FOLDER = Path("runs/mine")
INFINITY = float("inf")


# ---- what is given


def test_without_anything_it_is_the_paper_s_tree_by_cool_downs():
    options = SearchOptions()
    assert (options.depth, options.scorer, options.probabilities) == (3, Cooldown(), H)
    assert (options.seed, options.check, options.method, options.workers) == (0, 1.0, "greedy", 1)
    assert options.limits == (INFINITY, INFINITY)
    assert options.by_cooldown
    assert pytest.approx([i / 10 for i in range(1, 11)], abs=0) == H


def test_a_scorer_has_a_name_or_is_a_value():
    assert SearchOptions(scorer="density") == SearchOptions(scorer=Density())
    assert SearchOptions(scorer=Density(train=0.5)).scorer_options == Density(train=0.5)
    assert not SearchOptions(scorer="retrain").by_cooldown
    assert [resolve_scorer(name) for name in SCORERS] == [Cooldown(), Density(), Retrain()]


def test_probabilities_are_sorted_and_once():
    assert SearchOptions(probabilities=[1, 0.5, 0.5, np.float64(0.25)]).probabilities == (0.25, 0.5, 1.0)


def test_numbers_of_numpy_are_plain_numbers():
    options = SearchOptions(
        np.int64(2), seed=np.int64(3), check=np.float32(0.5), budget=np.float32(8), workers=np.int8(2)
    )
    values = (options.depth, options.seed, options.check, options.budget, options.workers)
    assert values == (2, 3, 0.5, 8.0, 2)
    assert [type(value) for value in values] == [int, int, float, float, int]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(depth=0), "depth must be a whole number from 1 to 10, got 0"),
        (dict(depth=11), "depth must be a whole number from 1 to 10, got 11"),
        (dict(scorer="densty"), r"scorer must be one of cooldown, density, retrain \(did you mean density\?\)"),
        (dict(scorer=None), "scorer must be one of"),
        (dict(probabilities=()), r"probabilities must not be empty, got \(\)"),
        (dict(probabilities=[0.0]), r"probabilities must be a number in \(0, 1\], got 0.0"),
        (dict(seed=1.5), "seed must be a whole number from 0"),
        (dict(budget=0), r"budget must be a number in \(0, 1e\+09\], got 0"),
        (dict(budget="soon"), "budget must be a time"),
        (dict(check=11), r"check must be a number in \[0, 10\], got 11"),
        (dict(method="random"), "method must be one of greedy, exhaustive, got 'random'"),
        (dict(method="exhaustive"), "method exhaustive needs the scorer retrain, got 'cooldown'"),
        (dict(workers=0), "workers must be a whole number from 1 to 1024, got 0"),
    ],
)
def test_what_cannot_be_used_is_refused(given, message):
    with pytest.raises(ArgumentError, match=message):
        SearchOptions(**given)
    assert SearchOptions(scorer="retrain", method="exhaustive").method == "exhaustive"


def test_a_changed_copy_is_checked_too():
    with pytest.raises(ArgumentError, match="depth must be"):
        replace(SearchOptions(), depth=0)


# ---- in a file


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(),
        SearchOptions(2, Cooldown(looks=(0.2, 0.4, 0.5), last=5), seed=7, budget="10m"),
        SearchOptions(1, Density(rule="entropy", temperature=0.1), (0.5, 1.0), check=0.25),
        SearchOptions(scorer=Retrain(spread=1, calibrate=False), method="exhaustive", check=0),
    ],
)
def test_options_come_back_from_a_specification(options):
    spec = options.spec()
    restored = SearchOptions.from_spec({**spec, "version": 1, "kind": "search", "task": {}}, FOLDER)
    assert restored == replace(options, check=0.0 if options.by_cooldown else options.check)
    assert restored.spec() == spec


def test_a_budget_is_part_of_a_search_that_plans_by_it():
    assert SearchOptions(budget="10m").spec()["budget"] == "10m"
    assert "budget" not in SearchOptions(scorer="density", budget="10m").spec()
    assert "workers" not in SearchOptions(workers=3).spec()  # the result is the same


def test_what_is_given_counts_before_a_specification():
    spec = SearchOptions(scorer="density").spec()
    restored = SearchOptions.from_spec(spec, FOLDER, budget=8, workers=2, seed=5)
    assert (restored.budget, restored.workers, restored.seed) == (8.0, 2, 5)


@pytest.mark.parametrize("scorer", [Cooldown(looks=(0.1,)), Density(train=0.5), Retrain(spread=2)])
def test_scorers_come_back(scorer):
    spec = {key: list(value) if isinstance(value, tuple) else value for key, value in scorer.spec().items()}
    assert restore_scorer(spec, FOLDER) == scorer


@pytest.mark.parametrize("spec", [{"name": "anneal"}, {"name": "cooldown", "rounds": 3}])
def test_a_scorer_of_another_version_is_refused(spec):
    name = spec["name"]
    with pytest.raises(
        RunError, match=f"runs/mine was begun by another version of augtree, with the scorer '{name}'"
    ):
        restore_scorer(spec, FOLDER)


@pytest.mark.parametrize("kind", [SearchOptions, *SCORERS.values()])
def test_every_option_is_documented(kind):
    """The command line shows what stands below a field."""
    from augtree.cli.fields import docs_of

    docs = docs_of(kind)
    for field in fields(kind):
        assert docs[field.name].endswith("."), field.name
        assert len(docs[field.name]) < 115, field.name


# ---- budgets


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (None, (np.inf, np.inf)),
        (8, (8.0, np.inf)),
        (0.5, (0.5, np.inf)),
        ("8", (8.0, np.inf)),
        ("90s", (np.inf, 90.0)),
        ("1.5m", (np.inf, 90.0)),
        ("2h", (np.inf, 7200.0)),
    ],
)
def test_budgets_are_times_or_training_equivalents(budget, expected):
    assert parse_budget(budget) == expected


@pytest.mark.parametrize("budget", ["", "m", "ten minutes", "-5m", "0", "nan", "infh", "10d", "1e99"])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(
        ArgumentError, match=r"budget must be a time \(90s, 10m, 2h\) or training equivalents \(8\), got"
    ):
        parse_budget(budget)


@pytest.mark.parametrize("budget", [0, -1, float("nan"), True, [8]])
def test_what_is_no_number_of_trainings_is_refused(budget):
    with pytest.raises(ArgumentError, match=r"budget must be a number in \(0, 1e\+09\], got"):
        parse_budget(budget)
