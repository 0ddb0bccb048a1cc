"""The time limit of a call, and the errors of a user's own transforms."""

import signal
import threading
import time
from dataclasses import dataclass

import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, CheckError, InputError, TransformError
from augtree.testing import check_transform
from augtree.transforms import Chain, Flip, Transform
from augtree.transforms.failures import TimeLimitError, applied, within
from augtree.transforms.pictures import Work

PICTURES = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)


def spin():
    while True:
        pass


def ignore_errors():
    while True:
        try:
            time.sleep(30)
        except Exception:
            continue


def elsewhere(work):
    """What a call gives in another thread than the main one."""
    found = []

    def call():
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture(autouse=True)
def _timer_as_before():
    """Nothing is left of a limit, however its call ended."""
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_call_gives_its_value_or_its_error():
    for run in (lambda work: work(), elsewhere):
        assert run(lambda: within(5, lambda: 3)) == 3
    with pytest.raises(KeyError):
        within(5, lambda: {}["fog"])
    assert isinstance(elsewhere(lambda: within(5, lambda: {}["fog"])), KeyError)


@pytest.mark.parametrize("work", [spin, ignore_errors, lambda: threading.Event().wait(30)])
def test_a_call_that_hangs_is_ended(work):
    begin = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"it took longer than 0.05 seconds"):
        within(0.05, work)
    assert time.monotonic() - begin < 5


def test_without_signals_a_call_that_hangs_is_abandoned():
    done = threading.Event()
    assert isinstance(elsewhere(lambda: within(0.05, lambda: done.wait(30))), TimeLimitError)
    done.set()  # so that no thread is left behind


@pytest.mark.parametrize(("outer", "inner"), [(0.05, 30), (30, 0.05)])
def test_the_shorter_of_two_limits_ends_a_call(outer, inner):
    found = []

    def inside():
        try:
            within(inner, spin)
        except TimeLimitError as error:
            found.append(str(error))
        return "went on"

    if inner < outer:
        assert within(outer, inside) == "went on"
        assert found == ["it took longer than 0.05 seconds"]
    else:
        with pytest.raises(TimeLimitError, match=r"longer than 0.05 seconds"):
            within(outer, inside)
        assert found == []


def test_an_outer_limit_still_holds_after_an_inner_one():
    def inside():
        within(0.02, lambda: 3)
        spin()

    with pytest.raises(TimeLimitError, match=r"longer than 0.1 seconds"):
        within(0.1, inside)


@pytest.fixture
def ticks():
    """A periodic timer of the caller's, which is soon due, and its signals."""
    signals = []
    before = signal.signal(signal.SIGALRM, lambda *_: signals.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.03)
    yield signals
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_callers_periodic_timer_ends_no_limit_and_goes_on_afterwards(ticks):
    with pytest.raises(TimeLimitError, match=r"longer than 0.1 seconds"):
        within(0.1, lambda: threading.Event().wait(5))
    assert signal.getitimer(signal.ITIMER_REAL)[1] == pytest.approx(0.03)
    before, begin = len(ticks), time.monotonic()
    while len(ticks) < before + 3 and time.monotonic() - begin < 5:
        time.sleep(0.01)
    assert len(ticks) >= before + 3


def test_a_handler_that_could_not_be_put_back_is_left_alone(monkeypatch):
    monkeypatch.setattr("augtree.transforms.failures.signal.getsignal", lambda _: None)
    threads = []
    assert within(5, lambda: threads.append(threading.current_thread()) or 3) == 3
    monkeypatch.undo()
    assert threads != [threading.main_thread()]


# ---- transforms


def hang(picture):
    time.sleep(30)


@dataclass(frozen=True)
class Hang(Transform):
    def draw(self, key, shape):
        spin()


def test_a_wrapped_function_that_hangs_is_an_error_that_names_it():
    state = torch.get_rng_state()
    fog = at.wrap(hang, name="Fog", seconds=0.05)
    with pytest.raises(TransformError, match=r"Fog \(.*hang\) must return within 0.05 seconds \(wrap\(..., seconds="):
        fog(PICTURES, seed=1)
    with pytest.raises(TransformError, match=r"Dim \(.*must return within 0.05 seconds"):
        at.wrap(lambda x, m: hang(x), name="Dim", magnitude=0.5, seconds=0.05).at(1.0)(PICTURES, seed=1)
    fog_later = elsewhere(lambda: at.wrap(lambda x: time.sleep(0.3), name="Fog", seconds=0.05)(PICTURES, seed=1))
    assert "must return within 0.05 seconds" in str(fog_later)
    assert torch.equal(state, torch.get_rng_state())


def test_the_limit_is_no_part_of_what_a_transform_does():
    assert at.wrap(hang, name="Fog", seconds=1) == at.wrap(hang, name="Fog")
    assert at.wrap(hang, name="Fog", seconds=1).arguments() == {"takes": "chw"}


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "1"])
def test_a_limit_is_a_number_of_seconds(seconds):
    with pytest.raises(ArgumentError, match="seconds must be a number in"):
        at.wrap(hang, name="Fog", seconds=seconds)
    with pytest.raises(ArgumentError, match="seconds must be a number in"):
        check_transform(Flip(), PICTURES, seconds=seconds)


def test_what_hangs_fails_its_checks():
    with pytest.raises(CheckError, match=r"Fog \(Wrapped\) fails 1 check:\n  runs on the sample: .*within 0.05 sec"):
        check_transform(at.wrap(hang, name="Fog", seconds=0.05), PICTURES)
    with pytest.raises(CheckError, match=r"(?s)runs on the sample: .*it took longer than 0.1 seconds"):
        check_transform(Hang(), PICTURES, seconds=0.1)


@dataclass(frozen=True)
class Raises(Transform):
    error: type = ValueError

    def draw(self, key, shape):
        raise self.error("no such picture")

    def __str__(self):
        return "Raises"


def kernel(pictures):
    raise ValueError("no such row")


@dataclass(frozen=True)
class BreaksInKernel(Transform):
    def draw(self, key, shape):
        return [[Work(kernel, key.rows)]]


def test_errors_of_own_classes_name_the_transform():
    with pytest.raises(TransformError, match=r"^Raises raised ValueError: no such picture$"):
        applied(Chain([Flip(), Raises()]), PICTURES, seed=0)
    with pytest.raises(
        TransformError, match=r"^a transform of Chain\(Flip, BreaksInKernel\) raised ValueError: no such row$"
    ):
        applied(Chain([Flip(), BreaksInKernel()]), PICTURES, seed=0)


def test_a_missing_file_of_an_own_class_is_a_fault_of_the_transform():
    with pytest.raises(TransformError, match=r"^Raises raised FileNotFoundError: no such picture$"):
        applied(Raises(FileNotFoundError), PICTURES, seed=0)


def test_errors_of_the_disk_elsewhere_stay_what_they_are(monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(Flip, "draw", full)
    with pytest.raises(OSError, match=r"^no space left on device$"):
        applied(Flip(), PICTURES, seed=0)


@pytest.mark.parametrize("error", [MemoryError, InputError])
def test_memory_and_our_own_errors_stay_what_they_are(error):
    with pytest.raises(error, match=r"^no such picture$"):
        applied(Raises(error), PICTURES, seed=0)
