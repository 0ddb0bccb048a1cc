import pytest
import torch

from augtree.errors import DeviceError, RunError, TaskError
from augtree.runs.failures import LONGEST_REASON, BudgetSpentError, attempt


def raising(error):
    def work():
        raise error

    return work


def test_what_succeeds_has_a_value_and_no_reason():
    assert attempt(lambda: [1, 2]) == ([1, 2], "")
    assert attempt(lambda: None) == (None, "")


@pytest.mark.parametrize("error", [ValueError("no fog"), TaskError("no fog"), RuntimeError("no fog"), KeyError("no")])
def test_what_raises_has_a_reason_and_no_value(error):
    assert attempt(raising(error)) == (None, f"{type(error).__name__}: {error}")


def test_a_reason_is_one_short_line():
    assert attempt(raising(ValueError("one\n  two\tthree"))) == (None, "ValueError: one two three")
    _, reason = attempt(raising(ValueError("no fog " * 100)))
    assert len(reason) == LONGEST_REASON
    assert reason.startswith("ValueError: no fog no fog")


@pytest.mark.parametrize("stop", [
    MemoryError, torch.OutOfMemoryError, OSError, FileNotFoundError, RunError, BudgetSpentError,
    KeyboardInterrupt, SystemExit,
])  # fmt: skip
def test_what_ends_a_run_is_no_failure_of_the_work(stop):
    with pytest.raises(stop):
        attempt(raising(stop("the end")))


@pytest.mark.parametrize("error", [
    torch.AcceleratorError("an illegal memory access was encountered\nmore"),
    RuntimeError("CUDA error: an illegal memory access was encountered\nmore"),
])  # fmt: skip
def test_a_gpu_that_fails_ends_a_run_since_every_later_training_would_fail_too(error):
    with pytest.raises(DeviceError, match=r"the GPU failed \(.*encountered\): nothing more .* resume the run$"):
        attempt(raising(error))


def test_a_gpu_without_memory_lacks_memory_and_has_not_failed():
    with pytest.raises(RuntimeError) as caught:
        attempt(raising(RuntimeError("CUDA error: out of memory")))
    assert not isinstance(caught.value, DeviceError)
