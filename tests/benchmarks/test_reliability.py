"""The counters of benchmarks/reliability.py count what they should."""

import numpy as np

from support.benchmarks import benchmark

runs, memory = benchmark("reliability_runs"), benchmark("reliability_memory")


def test_every_byte_that_differs_is_counted():
    whole = {"tree.json": b"abcd", "model": b"1234"}
    assert runs.different_bytes(whole, dict(whole)) == 0
    assert runs.different_bytes(whole, {"tree.json": b"abXd", "model": b"12345"}) == 2
    assert runs.different_bytes(whole, {"tree.json": b"abcd"}) == 4


def test_times_are_no_difference(tmp_path):
    for name, seconds, loss in (("one", 3, 1), ("other", 4, 1), ("third", 4, 2)):
        (tmp_path / name / "fit").mkdir(parents=True)
        (tmp_path / name / "fit" / "result.json").write_text(f'{{"cost": {{"seconds": {seconds}, "loss": {loss}}}}}')
        (tmp_path / name / "history.csv").write_text(f"loss,seconds\n{loss},{seconds}\n")
    one, other, third = (runs.contents(tmp_path / name) for name in ("one", "other", "third"))
    assert set(one) == {"fit/result.json", "history.csv"}
    assert one == other
    assert runs.different_bytes(one, third) == 2
    assert runs.fingerprint(tmp_path / "one") == runs.fingerprint(tmp_path / "other")
    assert runs.fingerprint(tmp_path / "one") != runs.fingerprint(tmp_path / "third")


def test_growth_is_measured_after_the_warm_up():
    mb = np.concatenate([np.linspace(0, 50, 50), 50 + 0.02 * np.arange(150)])
    row = memory.growth(np.stack([mb, np.full(200, 7)], 1))
    assert (row["mb_per_100"], row["files_grew"]) == (2.0, 0)
    assert memory.growth(np.stack([mb, np.arange(200)], 1))["files_grew"] == 149
