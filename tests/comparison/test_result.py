import csv
import io
import json

import numpy as np
import pytest

from augtree.comparison import Comparison


def rows(metric="test", **policies):
    """Rows of policies, each with a value for every seed; validation values stand behind a stroke."""
    found = []
    for name, (tested, val) in policies.items():
        for seed, value in enumerate(tested):
            found.append({"policy": name, "seed": seed, metric: value} | ({} if val is None else {"val": val}))
    return found


ROWS = rows(
    none=([0.50, 0.54, 0.52], 0.60),
    randaugment=([0.60, 0.70, 0.65], 0.70),
    trivialaugment=([0.80, 0.80, 0.80], 0.65),  # best on the test data, which must not matter
    mine=([0.64, 0.72, 0.71], 0.72),
)
FREE = ["none", "randaugment", "trivialaugment"]


def test_lines_by_hand():
    found = Comparison("accuracy", ROWS, FREE, "test")
    assert found.best_free == "randaugment"
    none, rand, _, mine = found.lines()
    assert [line.policy for line in found.lines()] == ["none", "randaugment", "trivialaugment", "mine"]
    assert (none.seeds, none.worst_group, none.val) == (3, None, 0.6)
    assert (none.mean, none.spread) == (pytest.approx(0.52), pytest.approx(0.02))
    assert none.difference == pytest.approx(-0.13)
    assert (rand.difference, rand.difference_se) == (None, None)
    # 0.04, 0.02, 0.06: a mean of 0.04, a deviation of 0.02
    assert mine.difference == pytest.approx(0.04)
    assert mine.difference_se == pytest.approx(0.02 / 3**0.5)


def test_seeds_are_paired_by_their_number():
    found = Comparison(
        "accuracy", [*rows(none=([0.5, 0.6], 0.5)), {"policy": "mine", "seed": 1, "test": 0.9}], ["none"], "test"
    )
    mine = found.lines()[1]
    assert (mine.difference, mine.difference_se, mine.spread) == (pytest.approx(0.3), None, None)
    alone = Comparison(
        "accuracy", [*rows(none=([0.5], 0.5)), {"policy": "mine", "seed": 7, "test": 0.9}], ["none"], "test"
    )
    assert alone.lines()[1].difference is None
    assert alone.verdict() == "There must be a free policy and another one, with a seed in common, for a verdict."


@pytest.mark.parametrize(
    ("metric", "free", "mine", "expected"),
    [
        ("accuracy", [0.5, 0.6], [0.7, 0.81], "mine is 0.2050 ± 0.0050 ahead of none, the best free policy."),
        (
            "accuracy",
            [0.5, 0.6],
            [0.6, 0.6],
            "mine is 0.0500 ± 0.0500 ahead of none, the best free policy: not more than noise.",
        ),
        (
            "accuracy",
            [0.5],
            [0.6],
            "mine is 0.1000 ahead of none, the best free policy: one seed in common cannot tell that from noise.",
        ),
        (
            "accuracy",
            [0.5, 0.6],
            [0.4, 0.52],
            "The search did not help: mine is 0.0900 ± 0.0100 behind none, which is free.",
        ),
        ("accuracy", [0.5], [0.5], "The search did not help: mine does just as none, which is free."),
        ("error", [0.5, 0.4], [0.3, 0.19], "mine is 0.2050 ± 0.0050 ahead of none, the best free policy."),
        (
            "error",
            [0.5, 0.4],
            [0.6, 0.48],
            "The search did not help: mine is 0.0900 ± 0.0100 behind none, which is free.",
        ),
    ],
)
def test_verdicts(metric, free, mine, expected):
    found = Comparison(metric, rows(none=(free, 0.5), mine=(mine, 0.5)), ["none"], "test")
    assert found.verdict() == expected


def test_where_lower_is_better_the_lowest_is_best():
    table = rows(none=([0.4], 0.4), ra=([0.5], 0.3), a=([0.2], 0.6), b=([0.3], 0.2))
    found = Comparison("error", table, ["none", "ra"], "test")
    assert found.best_free == "ra"
    assert found.verdict().startswith("b is 0.2000 ahead of ra")


def test_the_verdict_chooses_by_validation_too():
    table = rows(none=([0.5], 0.5), lucky=([0.9], 0.4), mine=([0.6], 0.7))
    assert Comparison("accuracy", table, ["none"], "test").verdict().startswith("mine is 0.1000 ahead")


def test_without_validation_the_first_free_policy_is_the_reference():
    table = rows(none=([0.5], None), ra=([0.6], None), mine=([0.7], None))
    found = Comparison("accuracy", table, ["none", "ra"], "test")
    assert found.best_free == "none"
    assert (
        found.verdict()
        == "mine is 0.2000 ahead of none, which is free: one seed in common cannot tell that from noise."
    )


@pytest.mark.parametrize("free", [[], ["a"]])
def test_without_a_free_policy_or_another_there_is_no_verdict(free):
    found = Comparison("accuracy", rows(a=([0.5], 0.5)), free, "test")
    assert found.verdict().startswith("There must be a free policy and another one")
    assert ("difference" in found.to_text()) == bool(free)


def test_the_table_as_text():
    table = [dict(row) for row in ROWS if row["policy"] in ("randaugment", "mine")]
    table[0]["worst_group"], table[1]["worst_group"] = 0.3, 0.5
    assert Comparison("accuracy", table, ["randaugment"], "test").to_text().splitlines() == [
        "| policy      | accuracy, test  | seeds | difference to randaugment | worst group     |",
        "| ----------- | --------------- | ----- | ------------------------- | --------------- |",
        "| randaugment | 0.6500 ± 0.0500 | 3     |                           | 0.4000 ± 0.1414 |",
        "| mine        | 0.6900 ± 0.0436 | 3     | +0.0400 ± 0.0115          |                 |",
    ]


def test_csv_and_json_can_be_read_again():
    found = Comparison("accuracy", ROWS, FREE, "test", ["a note"])
    read = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [
        {**row, "seed": int(row["seed"]), "test": float(row["test"]), "val": float(row["val"])} for row in read
    ] == ROWS
    content = json.loads(found.to_json())
    assert content["rows"] == ROWS
    assert content["lines"] == [vars(line) for line in found.lines()]
    assert (content["best_free"], content["verdict"]) == ("randaugment", found.verdict())
    assert (content["metric"], content["judged_on"], content["notes"]) == ("accuracy", "test", ["a note"])


# ---- trainings that failed

LOST = "TaskError: the training diverged"


def with_failures(*places, **policies):
    """Rows of policies, of which some (policy, seed) failed."""
    found = rows(**policies)
    return [
        {"policy": row["policy"], "seed": row["seed"], "failed": LOST}
        if (row["policy"], row["seed"]) in places
        else row
        for row in found
    ]


def test_the_mean_is_over_the_trainings_that_did_not_fail():
    table = with_failures(("mine", 1), none=([0.5, 0.6, 0.7], 0.5), mine=([0.8, 0.0, 0.9], 0.6))
    none, mine = Comparison("accuracy", table, ["none"], "test").lines()
    assert (none.seeds, none.failed, none.reason, none.failures) == (3, 0, "", "")
    assert (mine.seeds, mine.failed, mine.failures) == (2, 1, f"1 of 3 failed: {LOST}")
    assert (mine.mean, mine.val) == (pytest.approx(0.85), pytest.approx(0.6))
    assert mine.difference == pytest.approx(0.25)  # of 0.3 and 0.2: seed 1 has no pair


def test_a_policy_that_only_failed_stands_last_with_the_reason():
    table = with_failures(("mine", 0), ("mine", 1), mine=([0, 0], 0), none=([0.5, 0.6], 0.5), a=([0.4, 0.6], 0.4))
    found = Comparison("accuracy", table, ["none"], "test")
    assert [line.policy for line in found.lines()] == ["none", "a", "mine"]
    mine = found.lines()[-1]
    assert (mine.seeds, mine.mean, mine.spread, mine.difference, mine.val) == (0, None, None, None, None)
    assert found.to_text().splitlines()[-1] == (
        f"| mine   | failed          | 0     |                    | 2 of 2 failed: {LOST} |"
    )
    assert found.verdict() == (
        "The search did not help: a is 0.0500 ± 0.0500 behind none, which is free."
        f" Trainings with mine: 2 of 2 failed: {LOST}."
    )


def test_failures_stand_in_the_csv_and_the_json_and_nothing_is_nan():
    table = with_failures(("none", 0), ("mine", 0), ("mine", 1), none=([0, 0.6], 0.5), mine=([0, 0], 0))
    found = Comparison("accuracy", table, ["none"], "test")
    text = found.to_csv()
    assert text.splitlines() == [
        "policy,seed,test,val,failed",
        f"none,0,,,{LOST}",
        "none,1,0.6,0.5,",
        f"mine,0,,,{LOST}",
        f"mine,1,,,{LOST}",
    ]
    content = json.loads(found.to_json(), parse_constant=lambda word: pytest.fail(word))
    assert content["lines"] == [vars(line) for line in found.lines()]
    assert [(line["failed"], line["reason"], line["mean"]) for line in content["lines"]] == [
        (1, LOST, 0.6),
        (2, LOST, None),
    ]
    assert "nan" not in found.to_text() + text


def test_a_free_policy_that_only_failed_is_no_reference():
    places = [("none", 0), ("none", 1)]
    for val in (0.9, None):  # without validation data the first that was trained is the reference
        table = with_failures(*places, none=([0, 0], val), ra=([0.5, 0.6], val), mine=([0.7, 0.8], val))
        assert Comparison("accuracy", table, ["none", "ra"], "test").best_free == "ra"
    alone = Comparison("accuracy", [row for row in table if row["policy"] != "ra"], ["none"], "test")
    assert alone.best_free is None
    assert alone.verdict().startswith("There must be a free policy and another one, with a seed in common")


def test_a_reason_does_not_break_the_table():
    table = [*rows(none=([0.5], 0.5)), {"policy": "mine", "seed": 0, "failed": "a | b"}]
    assert (
        Comparison("accuracy", table, ["none"], "test")
        .to_text()
        .splitlines()[-1]
        .endswith(r"1 of 1 failed: a \| b |")
    )


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        ([0.8, 0.9], "At the same cost, search is 0.1000 ± 0.0000 ahead of longer."),
        ([0.6, 0.7], "At the same cost, search is 0.1000 ± 0.0000 behind longer."),
        ([0.8, 0.8], "At the same cost, search is 0.0500 ± 0.0500 ahead of longer: not more than noise."),
    ],
)
def test_a_finished_model_is_held_against_the_best_control_of_its_cost(mine, expected):
    table = rows(none=([0.5, 0.5], 0.5), longer=([0.7, 0.8], 0.9), averaged=([0.6, 0.6], 0.8), search=(mine, 0.7))
    found = Comparison("accuracy", table, ["none"], "test", [], ["longer", "averaged"], ["search"])
    assert expected in found.verdict()
    assert found.verdict().startswith("search is ")


def test_a_control_is_never_the_answer_of_a_search():
    table = rows(none=([0.5], 0.5), longer=([0.9], 0.9))
    found = Comparison("accuracy", table, ["none"], "test", [], ["longer"], [])
    assert found.verdict().startswith("There must be a free policy and another one")


def in_groups(policy, seed, **accuracies):
    """A row with the accuracy of each group."""
    each = {f"group {name}": value for name, value in accuracies.items()}
    return {"policy": policy, "seed": seed, "test": 0.5, "worst_group": min(accuracies.values()), **each}


PUBLISHED = rows(
    none=([0.50, 0.54, 0.52], 0.60),
    mixup=([0.60, 0.60, 0.60], 0.65),
    lisa=([0.70, 0.70, 0.70], 0.62),  # best on the test data, which must not matter
    search=([0.62, 0.64, 0.66], 0.61),
)


def test_the_verdict_is_about_the_search_and_then_about_the_published_methods():
    found = Comparison("accuracy", PUBLISHED, ["none"], "test", published=["mixup", "lisa"]).verdict()
    assert found.startswith("search is 0.1200 ± 0.0115 ahead of none, the best free policy.")
    assert found.endswith(" Beside the published methods, search is 0.0400 ± 0.0115 ahead of mixup.")


def test_published_methods_alone_have_a_verdict_of_their_own():
    published = [row for row in PUBLISHED if row["policy"] != "search"]
    found = Comparison("accuracy", published, ["none"], "test", published=["mixup", "lisa"]).verdict()
    assert found == "mixup is 0.0800 ± 0.0115 ahead of none, the best free policy."
    worse = rows(none=([0.5, 0.6], 0.6), mixup=([0.4, 0.5], 0.5))
    found = Comparison("accuracy", worse, ["none"], "test", published=["mixup"]).verdict()
    assert found == "It did not help: mixup is 0.1000 ± 0.0000 behind none, which is free."


def test_groups_stand_in_columns_where_there_are_few():
    table = [in_groups("none", 0, a=0.2, b=0.8), in_groups("none", 1, a=0.4, b=0.8), in_groups("mine", 0, a=0.5, b=1)]
    found = Comparison("accuracy", table, ["none"], "test")
    assert found.lines()[0].groups == {
        "a": (pytest.approx(0.3), pytest.approx(np.std([0.2, 0.4], ddof=1))),
        "b": (0.8, 0.0),
    }
    head, _, none, mine = ([cell.strip() for cell in line.split("|")[1:-1]] for line in found.to_text().splitlines())
    assert head[-3:] == ["worst group", "a", "b"]
    assert none[-3:] == ["0.3000 ± 0.1414", "0.3000 ± 0.1414", "0.8000 ± 0.0000"]
    assert mine[-3:] == ["0.5000", "0.5000", "1.0000"]


@pytest.mark.parametrize("names", ["a", "abcdefg"])
def test_one_group_or_many_are_in_the_csv_alone(names):
    found = Comparison("accuracy", [in_groups("none", 0, **dict.fromkeys(names, 0.5))], ["none"], "test")
    assert found.to_text().splitlines()[0].rstrip(" |").endswith("worst group")
    assert all(f"group {name}" in found.to_csv() for name in names)


def test_what_a_training_costs_stands_in_the_table():
    table = [{"policy": "none", "seed": seed, "test": 0.5, "cost": cost} for seed, cost in enumerate([1.0, 1.5])]
    found = Comparison("accuracy", [*table, {"policy": "mine", "seed": 0, "test": 0.6}], ["none"], "test")
    head, _, none, mine = ([cell.strip() for cell in line.split("|")[1:-1]] for line in found.to_text().splitlines())
    assert (head[-1], none[-1], mine[-1]) == ("trainings", "1.2", "")


def test_free_policies_alone_have_a_best_one():
    found = Comparison("accuracy", [row for row in ROWS if row["policy"] != "mine"], FREE, "test")
    assert found.verdict() == (  # validation data chooses; pairs by hand: -0.20, -0.10, -0.15
        "randaugment is the best free policy, by validation data: in accuracy (test) 0.1500 ± 0.0289 behind"
        " trivialaugment, the next."
    )
    without = rows(none=([0.5, 0.6], None), ta=([0.7, 0.6], None), ra=([0.5, 0.5], None))
    assert Comparison("accuracy", without, ["none", "ta", "ra"], "test").verdict() == (
        "ta is the best free policy: in accuracy (test) 0.1000 ± 0.1000 ahead of none, the next: not more than noise."
    )
    assert Comparison("error", without, ["none", "ta", "ra"], "test").verdict() == (
        "ra is the best free policy: in error (test) 0.0500 ± 0.0500 ahead of none, the next: not more than noise."
    )
