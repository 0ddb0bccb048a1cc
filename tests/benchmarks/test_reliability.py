"""The counters of benchmarks/reliability.py count what they should."""

from collections import Counter

import numpy as np
import pytest

from support.benchmarks import benchmark

runs, memory, fuzz = (benchmark(f"reliability_{name}") for name in ("runs", "memory", "fuzz"))


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


# ---- fuzzing: a little of what `reliability.py fuzz` does for minutes


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    place = tmp_path_factory.mktemp("fuzz")
    return place, fuzz.readers(place)


@pytest.mark.parametrize(("name", "examples"), [("policy", 150), ("index.csv", 60), ("run", 60)])
def test_what_is_spoilt_is_valid_or_refused_by_an_error_of_ours(readers, name, examples, quick_disk):
    place, found = readers
    outcomes = Counter()
    fuzz.fuzz(fuzz.checked(found[name][0], place, outcomes), found[name][1], examples, number=17)
    assert outcomes["valid"] > 0
    assert outcomes["refused"] > examples / 4
    assert outcomes.total() >= examples / 2


def test_another_error_and_a_hang_are_found(tmp_path, monkeypatch):
    def reads(_, content):
        if len(content) > 2:
            raise KeyError(content)

    with pytest.raises(KeyError):
        fuzz.fuzz(fuzz.checked(reads, tmp_path, Counter()), fuzz.policies, 20, number=0)
    monkeypatch.setattr(fuzz, "SECONDS", 0.05)
    with pytest.raises(TimeoutError, match=r"it took longer than 0\.05 seconds"):
        fuzz.checked(lambda *_: [None for _ in iter(int, 1)], tmp_path, Counter())(b"")
