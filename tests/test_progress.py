import os
import re
import subprocess
import sys
import types
from dataclasses import dataclass, replace

import pytest

import augtree as at
from augtree import progress
from augtree.forests.algorithm2 import Weighed
from augtree.forests.group_trees import GroupFinished, GroupStarted
from augtree.loggers import Logger
from augtree.progress import Console, counting, shown
from augtree.runs.events import Began, Event, Finished, Note, Planned, RowTrained, Stepped, Working
from augtree.search.factorial import Effect
from augtree.search.grow import Built, Growth, NodeBuilt
from augtree.search.scorers.base import Scored
from augtree.search.trunk_events import CooledDown, FactorTested, Finding, TrunkTrained
from augtree.tasks import Classification
from augtree.transforms import Invert
from support.blobs import blobs

GROUPS = ["ab"[i // 2 % 2] for i in range(80)]
QUICK = Classification(model="cnn", options={"width": 2}, steps=4, batch_size=16)
HARM = Effect(0.25, 0.05)
TESTED = Finding(0, 0.6, "Flip", HARM, {"a": HARM, "b": HARM}, ("a",), {})
BUILT = Built(Invert(1.0), 0.5, True, gain=0.25, gain_se=0.05)
SHOWN = [
    (Planned(["few samples"], ["a plan"], steps=3), ["a plan", "few samples"]),
    (Note("look"), ["look"]),
    (Began({"kind": "train"}, blobs()), []),
    (Finished("a verdict"), []),
    (Weighed({"a": 1.0}, {"a": 0.5}), []),
    (Stepped(2), []),
    (Working("training"), []),
    (RowTrained("mine", 1, {}, "TaskError: it diverged"), ["mine, seed 1: failed: TaskError: it diverged"]),
    (RowTrained("mine", 2, {"test": 0.5, "worst_group": None}), ["mine, seed 2: test 0.5000"]),
    (RowTrained("mine", 3, {"tree": "Rotate", "test": 0.5}), ["mine, seed 3: tree Rotate, test 0.5000"]),
    (GroupStarted("a", 1, 2, "80 pictures"), ["\nGroup a (1 of 2): 80 pictures"]),
    (GroupFinished("a", 1, 2, "empty", 3.25), ["Group a (1 of 2 done): empty, 3.2 trainings."]),
    (TrunkTrained(5), []),
    (CooledDown("mixture", 0.5, 5, 0), []),
    (CooledDown("m" * 101, 0.5, 5, None), [f"Cool-down on {'m' * 99}…: validation loss 0.5000."]),
    (
        FactorTested(TESTED, True),
        [
            (
                "Look after 0.60 trainings: flips left-right: raises the validation loss by 0.250 ± 0.050;"
                " leaves play in a."
            )
        ],
    ),
    (Scored(1, "Invert"), []),
    (NodeBuilt(1, BUILT, Growth(1, 0)), ["Node 1: Invert(1) p=0.5, the validation loss falls by 0.2500 ± 0.0500."]),
    (NodeBuilt(2, BUILT._replace(improves=False, why="No gain"), Growth(1, 0)), ["Node 2: empty. No gain."]),
]


def kinds(of=Event):
    return {kind for child in of.__subclasses__() for kind in {child} | kinds(child)}


def test_every_event_is_shown():
    assert {kind for kind in kinds() if kind.__module__.startswith("augtree.")} == {type(event) for event, _ in SHOWN}
    for event, lines in SHOWN:
        said = []
        Console(said.append)(event)
        assert said == lines


def test_an_event_that_cannot_be_shown_is_an_error():
    @dataclass(frozen=True)
    class Strange(Event):
        what: int

    with pytest.raises(TypeError, match="abstract method '?describe"):
        Strange(1)


def test_a_finding_in_one_group_names_it():
    said = []
    Console(said.append)(FactorTested(TESTED, grouped=True))
    Console(said.append)(FactorTested(replace(TESTED, removed_in=()), grouped=True))
    assert said[0].endswith("; leaves play in a.")
    assert said[1].endswith("; stays in play.")


def test_the_parts_of_a_search_are_counted_together():
    said = []
    watch = Console(said.append)
    watch.last_line -= 2 * progress.SILENCE
    watch(Planned(steps=1000))
    watch(TrunkTrained(50))
    assert said.pop() == "the trunk: training on the mixture: 50 of about 1,000 steps."
    watch.last_line -= 2 * progress.SILENCE
    watch(TrunkTrained(100))
    assert said.pop().startswith("the trunk: training on the mixture: 100 of about 1,000 steps, about ")
    watch(CooledDown("mixture", 0.5, 20, 0))
    watch(Working("the last part"))
    watch.last_line -= 2 * progress.SILENCE
    watch(Stepped(300))
    assert said.pop().startswith("the last part: 420 of about 1,000 steps, about ")
    watch(Planned(trainings=3))
    watch(RowTrained("none", 0, {"val": 0.5}))
    watch.last_line -= 2 * progress.SILENCE
    watch(RowTrained("none", 1, {"val": 0.5}))
    assert said[1].startswith("none, seed 1: 2 of about 3 done, about ")
    assert [said[0], *said[2:]] == ["none, seed 0: val 0.5000", "none, seed 1: val 0.5000"]


def test_the_time_left_of_a_resumed_run_rests_on_what_is_done_since(monkeypatch):
    now, said = [0.0], []
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    watch = Console(said.append)
    watch(Planned(steps=1000))
    watch(Working("training"))
    for seconds, done in ((60, 500), (80, 502), (100, 504)):
        now[0] = seconds
        watch(Stepped(done))
    assert said == [
        "training: 500 of about 1,000 steps.",
        "training: 502 of about 1,000 steps, about 83.0 min left.",
        "training: 504 of about 1,000 steps, about 82.7 min left.",
    ]
    watch(Planned(steps=10))
    for seconds, done in ((200, 8), (220, 9)):
        now[0] = seconds
        watch(Stepped(done))
    assert said[3:] == ["8 of about 10 steps.", "9 of about 10 steps, about 20 s left."]


def test_a_note_is_printed_once():
    said = []
    watch = Console(said.append)
    watch(Planned(["one"]))
    watch(Note("two"))
    watch.show_notes(["one", "two", "three", "three"])
    assert said == ["one", "two", "three"]


# ---- where it is shown


def test_without_a_terminal_nothing_is_shown(capfd):
    with shown(None) as watch:
        assert watch.watchers == []
    at.train(blobs(), QUICK)
    assert capfd.readouterr() == ("", "")


def test_the_caller_s_watcher_is_used_in_a_terminal_too(monkeypatch):
    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    with shown(print) as watch:
        assert watch.watchers == [print]


class Numbers(Logger):
    def __init__(self):
        super().__init__()
        self.rows, self.flushed = [], 0

    def log_numbers(self, numbers, step):
        self.rows.append((step, numbers))

    def flush(self):
        self.flushed += 1


def test_beside_a_logger_the_progress_is_shown(monkeypatch):
    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    logger, seen = Numbers(), []
    with shown(logger) as watch:
        assert [type(each) for each in watch.watchers] == [Numbers, Console]
    with shown([logger, seen.append]) as watch:
        assert watch.watchers == [logger, seen.append]
        watch(Stepped(20, 0.5))
    assert (logger.rows, logger.flushed, seen) == ([(20, {"training/loss": 0.5})], 2, [Stepped(20, 0.5)])


def test_a_watcher_that_fails_is_left_out_and_the_run_goes_on():
    events, calls = [], []

    def fails(event):
        calls.append(event)
        if isinstance(event, Stepped):
            raise ValueError("the disk is full")

    with pytest.warns(RuntimeWarning, match="fails.* watches the run no more.*ValueError: the disk is full"):
        watched = at.train(blobs(), QUICK, watch=[fails, events.append])
    assert watched.metrics == at.train(blobs(), QUICK).metrics
    assert [type(event) for event in calls] == [Began, Planned, Stepped]
    assert len([event for event in events if isinstance(event, Stepped)]) == 4


def test_where_the_progress_is_shown_a_failed_watcher_is_a_line_of_it():
    said = []
    with Console(said.append) as console:
        at.train(blobs(), QUICK, watch=[console, lambda event: 1 / 0])
    assert len([line for line in said if "the run no more, since it failed (ZeroDivisionError" in line]) == 1


def test_a_logger_that_cannot_be_flushed_loses_no_result():
    class Broken(Numbers):
        def flush(self):
            raise OSError("no space left")

    with pytest.warns(RuntimeWarning, match=r"Broken\(\) watches the run no more.*no space left"):
        assert at.train(blobs(), QUICK, watch=Broken()).metrics


def test_an_interruption_in_a_watcher_ends_the_run():
    def stop(event):
        raise KeyboardInterrupt

    logger = Numbers()
    with pytest.raises(KeyboardInterrupt):
        at.train(blobs(), QUICK, watch=[stop, logger])
    assert logger.flushed == 1


@pytest.mark.parametrize("value", ["tensorboard", 3, [print, "x"]])
def test_what_cannot_watch_is_refused(value):
    with pytest.raises(at.errors.ArgumentError, match="watch must be a function of an event, a logger, or a list"):
        at.train(blobs(), QUICK, watch=value)


CALLS = {
    "search_tree": lambda **more: at.search_tree(blobs(), QUICK, [Invert(1.0)], depth=1, budget=1, **more),
    "search_forest": lambda **more: at.search_forest(
        blobs(groups=GROUPS), QUICK, [Invert(1.0)], method="paper", depth=1, probabilities=[1.0], alpha=2, **more
    ),
    "fit_forest": lambda **more: at.fit_forest(blobs(groups=GROUPS), QUICK, alpha=2, **more),
    "compare": lambda **more: at.compare(blobs(), QUICK, {"none": None}, seeds=1, **more),
    "train": lambda **more: at.train(blobs(), QUICK, **more),
    "evaluate": lambda **more: at.evaluate(
        blobs(),
        at.tasks.Contrastive(model="cnn", options={"width": 2}, steps=2, batch_size=16, dim=4),
        {"none": None},
        protocol="linear",
        seeds=1,
        **more,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_in_a_terminal_python_shows_what_the_command_line_shows(name, monkeypatch, capfd):
    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    monkeypatch.setattr(progress, "new_bar", lambda total: bars.append(total))
    bars, events = [], []
    CALLS[name]()
    printed = capfd.readouterr()
    assert printed.out == ""
    CALLS[name](watch=events.append)
    assert printed.err.splitlines() == "".join(f"{line}\n" for e in events for line in e.describe()).splitlines()
    plans = [event for event in events if isinstance(event, Planned)]
    assert len(plans) >= 1
    assert bars == [total for plan in plans if (total := plan.steps or plan.trainings or plan.scorings)]


def test_a_search_within_a_comparison_is_silent(monkeypatch, capfd):
    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    monkeypatch.setattr(progress, "new_bar", lambda total: None)
    found = at.comparison.Searched(at.transforms.Space([Invert(1.0)]), budget=1)
    at.compare(blobs(), QUICK, {"search": found}, seeds=1)
    printed = capfd.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in printed[-3:]] == [
        "1 training.", "A training has 4 steps", "search, seed 0",
    ]  # fmt: skip
    assert not any("Cool-down" in line for line in printed)


def test_a_resumed_run_is_shown(monkeypatch, capfd, tmp_path):
    CALLS["compare"](out=tmp_path / "c")
    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    monkeypatch.setattr(progress, "new_bar", lambda total: None)
    at.resume(tmp_path / "c", data=blobs())
    assert "none, seed 0: " in capfd.readouterr().err


def test_a_notebook_gets_lines_on_its_standard_output(monkeypatch, capfd):
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert progress.in_notebook()
    CALLS["compare"]()  # without ipywidgets there is no bar, and no warning
    printed = capfd.readouterr()
    assert re.search(r"^1 training\.\nA training has 4 steps.*\nnone, seed 0: ", printed.out, flags=re.MULTILINE)
    assert printed.err == ""
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert not progress.in_notebook()


TERMINAL = """
import os, pty, sys
script = sys.argv[1]
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-W", "error", "-c", script])
shown = b""
try:
    while part := os.read(fd, 4096):
        shown += part
except OSError:
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


SCRIPT = """
from augtree.progress import shown
from augtree.runs.events import Planned, RowTrained
with shown(None) as watch:
    watch(Planned(lines=["2 trainings."], trainings=2))
    watch(RowTrained("none", 0, {"val": 0.5}))
    watch(RowTrained("[none]", 1, {"val": 0.5}))
"""


@pytest.mark.parametrize("rich", [True, False])
def test_a_real_terminal_has_a_bar_with_the_time_left_where_rich_is_installed(rich):
    script = SCRIPT if rich else f"import sys; sys.modules['rich'] = None{SCRIPT}"
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-c", TERMINAL, script], capture_output=True, env=environment)
    text = done.stdout.decode()
    assert done.returncode == 0, text
    assert "2 trainings." in text
    assert "[none], seed 1: val 0.5000" in text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert bool(re.search(r"2/2 0:00:\d\d elapsed, 0:00:00 left", plain)) == rich


def test_the_bar_is_removed_when_a_run_fails():
    stopped = []
    watch = Console(print)
    watch.bar = types.SimpleNamespace(stop=lambda: stopped.append(1))
    with pytest.raises(at.AugtreeError), watch:
        at.compare(blobs(), QUICK, {}, watch=watch)
    assert stopped == [1]
    assert watch.bar is None


def test_counting_tells_the_number_and_a_remark(monkeypatch):
    said = []
    monkeypatch.setattr(progress, "SILENCE", 0)
    with counting("structures", said.append) as report:
        report(4, 10)
        report(5, 10, ", 1 bad")
    assert said[0] == "structures: 4 of about 10 done."
    assert [line.rpartition(", about")[0] for line in said[1:]] == ["structures, 1 bad: 5 of about 10 done"]
