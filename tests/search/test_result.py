"""The result of a search: its file, its history, its cost."""

import csv
import json
from types import SimpleNamespace

from augtree.runs.store import Run
from augtree.search.result import Cost, cost_of, history, passes_in
from support.results import COST, FREE, RESULT


def test_the_file_holds_everything_but_the_history():
    found = json.loads(RESULT.to_json())
    assert found == {
        "tree": "Tree(1: Invert(0.2) p=0.5)",
        "verdict": RESULT.verdict(),
        "importances": {"Invert": {"gain": 0.25, "spread": 0.0125}},
        "free": {
            name: {
                "loss": p.loss,
                "loss_se": p.loss_se,
                "metric": p.metric,
                "behind": p.behind,
                "behind_se": p.behind_se,
            }
            for name, p in FREE.items()
        },
        "cost": {
            "forward": 1000,
            "backward": 500,
            "training_equivalents": 2.5,
            "seconds": 12.3,
            "scorings": 40,
            "check_equivalents": 1.25,
            "model_equivalents": 0.0,
        },
        "notes": ["Node 2 is empty: Cutout was best, but not on fresh data."],
        "deterministic": True,
        **dict(mixture=None, single=None, members=[], findings=[], cooled={}, measures={}),
    }


def test_the_history_is_a_table_that_others_can_read():
    rows = list(csv.DictReader(RESULT.history_csv().splitlines()))
    assert [row["candidate"] for row in rows] == ["yardstick", "Fog"]
    assert rows[0]["loss"] == "1.0"
    assert rows[0]["p"] == rows[0]["failed"] == ""
    assert rows[1]["failed"] == 'it said "no", twice'
    assert RESULT.history_csv().endswith("\n")


def test_words_for_people():
    assert str(COST) == (
        "2.50 training equivalents, 1.25 of them to check the result (1,000 forward and 500 backward sample passes), "
        "40 scorings, 12 s"
    )
    assert str(Cost(1000, 500, 2.04, 12.3, 21, 0.0, 1.6)) == (
        "2.04 training equivalents, 1.60 of them in the finished model (1,000 forward and 500 backward sample"
        " passes), 21 scorings, 12 s"
    )


# ---- history and cost


def test_history_has_a_row_for_each_scored_candidate_in_order():
    run = Run.begin(None, {})
    run.unit("trunk/1", lambda: ({"step": 3}, None))
    for name in "cab":
        run.unit(f"node/1/round/0/{name}", lambda name=name: ({"candidate": name, "loss": 1.0}, None))
    run.unit("free/none", lambda: ({"loss": 1.0}, None))
    rows = history(run)
    assert [row["candidate"] for row in rows] == ["c", "a", "b"]
    assert set(rows[0]) == {"candidate", "loss", "seconds", "forward", "backward"}


def test_cost_counts_everything_and_scorings_by_themselves():
    run = Run.begin(None, {})
    readings = iter([0, 100, 100, 164, 164, 170, 170, 180, 180, 230])
    run.meter = lambda: (next(readings), 0)
    run.unit("trunk/1", lambda: ({"step": 3}, None))
    run.unit("node/1/round/0/yardstick", lambda: ({"candidate": "yardstick", "round": 0}, None))
    run.unit("node/1/round/0/x", lambda: ({"candidate": "x", "round": 0}, None))
    run.unit("node/1/confirm/0/winner", lambda: ({"candidate": "x", "round": "confirm"}, None))
    run.unit("free/none", lambda: ({"loss": 1.0}, None))
    found = cost_of(run, SimpleNamespace(total_steps=50, passes_per_step=2))
    assert (found.forward, found.backward, found.training_equivalents) == (230, 0, 2.3)
    assert found.scorings == 2  # neither the confirmation nor the check
    assert found.check_equivalents == 0.5


def test_passes_are_counted_by_prefix():
    run = Run.begin(None, {})
    readings = iter([(0, 0), (7, 3), (7, 3), (12, 5), (12, 5), (13, 5)])
    run.meter = lambda: next(readings)
    for key in ("trunk/1", "cool/0", "look/0/0"):
        run.unit(key, lambda: ({}, None))
    assert passes_in(run, "trunk/", "cool/") == 17
    assert passes_in(run, "free/") == 0
