"""Methods on graphs: what is done is not done again, and each is judged as `evaluate` does."""

from types import SimpleNamespace

import numpy as np
import pytest

import augtree as at
from support.benchmarks import benchmark
from support.contrastive import graphs


@pytest.fixture(scope="module")
def module():
    return benchmark("graph_methods")


def test_a_result_that_was_cut_short_is_written_anew(module, tmp_path):
    path = tmp_path / "new" / "lines.jsonl"
    assert module.lines_of(path) == []
    module.append(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"a": 2, "fol')
    assert module.lines_of(path) == [{"a": 1}]
    module.append(path, {"a": 3})
    assert module.lines_of(path) == [{"a": 1}, {"a": 3}]


def test_a_policy_is_judged_as_evaluate_does(module):
    options, data = SimpleNamespace(device="cpu", workers=1, epochs=1), graphs()
    line = module.measured(data, "graphcl", 2, options)
    task = at.tasks.Contrastive(**{**module.PROTOCOLS["graphcl"].settings, "epochs": 1, "device": "cpu"})
    table = at.evaluate(data, task, {"graphcl": "graphcl"}, protocol="graphcl", seeds=[2])
    assert line["folds"] == [row["accuracy"] for row in table.rows if row["row"] == "graphcl"]
    assert line["cost"] == 1


@pytest.mark.parametrize("method", ["joao", "joao-v2", "infograph", "random-encoder"])
def test_methods_have_a_line_each(module, method):
    options = SimpleNamespace(device="cpu", workers=1, epochs=1)
    line = module.measured(graphs(), method, 0, options)
    assert len(line["folds"]) == 10
    assert all(0 <= one <= 1 for one in line["folds"])
    lines = [{**line, "seed": 0}, {**line, "seed": 1, "folds": [0.5] * 10}]
    found = module.summary(lines)
    assert found["mean"] == pytest.approx(np.mean([np.mean(line["folds"]), 0.5]))
    assert (found["cost"] == 0) == (method == "random-encoder")
