"""Memory that runs out: judging is tried once more in halves, training ends with an error; nothing else changes."""

import pytest
import torch
from torch import nn

import augtree as at
from augtree.__main__ import main
from augtree.errors import OutOfMemoryError, TransformError, lacks_memory
from augtree.forests.implicit_gradient import has_forward_mode
from augtree.runs.events import Note
from augtree.runs.failures import attempt
from augtree.runs.store import Run
from augtree.transforms import Identity, SamplePairing, wrap
from support.blobs import blobs, net, rows, task
from support.rings import ring
from support.searches import LINEAR, corners, linear_model
from support.tree_runs import files, search

CPU_ERROR = (
    "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate"
    " 9 bytes. Error code 12 (Cannot allocate memory)"
)
ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError(CPU_ERROR),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    MemoryError("Unable to allocate 3 GiB for an array"),
]


class Hungry(nn.Module):
    """Has memory for so many samples at once, in each mode; notes how many it got."""

    training_most = judging_most = 10**9
    error = ERRORS[0]
    sizes: list = []  # noqa: RUF012 - one list for all models

    def __init__(self, inner=net):
        super().__init__()
        self.inner = inner()

    def forward(self, batch):
        if not self.training:
            self.sizes.append(len(batch))
        if len(batch) > (self.training_most if self.training else self.judging_most):
            raise self.error
        return self.inner(batch)


@pytest.fixture
def hungry(monkeypatch):
    """Sets what there is memory for."""
    monkeypatch.setattr(Hungry, "sizes", [])

    def most(**limits):
        Hungry.sizes.clear()
        for name, value in limits.items():
            monkeypatch.setattr(Hungry, name, value)
        return Hungry.sizes

    return most


@pytest.mark.parametrize("error", ERRORS, ids=["gpu", "cpu", "library", "numpy"])
@pytest.mark.parametrize("policy", [None, SamplePairing(0.5)])
def test_judging_is_tried_once_more_in_halves(hungry, error, policy):
    sizes = hungry()
    ready = task(model=Hungry).prepare(blobs(val=17))
    state = ready.fresh(0)
    expected = ready.logits(state, rows(ready), policy, 5)  # partners come from all samples, in halves too
    assert (sizes, ready.halved, ready.passes.forward) == ([17], False, 17)
    hungry(judging_most=9, error=error)
    torch.testing.assert_close(ready.logits(state, rows(ready), policy, 5), expected, rtol=1e-5, atol=1e-6)
    assert (sizes, ready.halved, ready.passes.forward) == ([17, 9, 8], True, 34)
    ready.logits(state, rows(ready), policy, 5)
    assert sizes == [17, 9, 8, 9, 8]
    hungry(judging_most=8)
    with pytest.raises(OutOfMemoryError, match="out of memory on cpu with batches of 16 samples of 3x8x8: use a sm"):
        ready.logits(state, rows(ready), policy, 5)
    assert sizes == [9]


def test_graphs_are_judged_in_halves_too():
    graphs = [ring(3 + i % 4) for i in range(15)]
    data = at.data.from_arrays(graphs, split=["train"] * 8 + ["val"] * 7)
    ready = at.tasks.Classification(model="gin", steps=2, batch_size=4, device="cpu").prepare(data)
    state = ready.fresh(0)
    expected = ready.logits(state, rows(ready))
    ready.halved = True
    torch.testing.assert_close(ready.logits(state, rows(ready)), expected, rtol=1e-4, atol=1e-5)


def test_a_training_that_does_not_fit_says_what_to_do_and_can_be_resumed(hungry, tmp_path):
    hungry()
    wanted, whole, folder = task(model=Hungry), tmp_path / "whole", tmp_path / "run"
    at.train(blobs(), wanted, None, out=whole)
    hungry(training_most=15)
    with pytest.raises(OutOfMemoryError) as caught:
        at.train(blobs(), wanted, None, out=folder)
    assert str(caught.value) == (
        "out of memory on cpu with batches of 16 samples of 3x8x8: use a smaller batch_size (--batch-size) or model"
        f" (while train/1 was computed); what is finished is kept: free memory, then `augtree resume {folder}`"
    )
    hungry(training_most=16)
    at.resume(folder, data=blobs(), task=wanted)
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def hungry_linear():
    return Hungry(linear_model)


def test_a_search_in_halves_is_resumed_in_halves_to_the_same_bytes(hungry, tmp_path, cut, quick_disk):
    """As many at once as a search had is a fact of it, and told; the data has 128 validation samples."""
    changes = {"scorer": "cooldown", "task": at.tasks.Classification(**{**vars(LINEAR), "model": hungry_linear})}
    notes = []
    sizes = hungry(judging_most=127)
    search(tmp_path / "whole", **changes, watch=lambda e: isinstance(e, Note) and notes.append(e.text))
    assert sizes[:3] == [128, 64, 64]
    assert set(sizes) == {128, 64, 32}  # 64 training samples, in halves
    assert sizes[-2:] == [64, 64]
    assert [note for note in notes if "memory" in note] == [
        "Judging ran out of memory on cpu: it goes on with half as many samples at once (last digits may change)."
    ]
    with Run.open(tmp_path / "whole", write=False) as run:
        assert run.fact("halved") is True
    for number in (2, 3, 6):  # before it is a fact, and after
        folder = tmp_path / str(number)
        hungry(judging_most=127)
        cut(number, "unit.recorded")
        with pytest.raises(cut.Error):
            search(folder, **changes)
        cut(0)
        with Run.open(folder, write=False) as run:
            known = run.fact("halved", default=False)
        hungry(judging_most=10**9 if known else 127)  # more memory than before changes nothing
        at.resume(folder, data=corners(64, 128), task=changes["task"])
        assert (128 in sizes) == (not known)
        assert files(folder) == files(tmp_path / "whole")


# ---- what is no failure of a candidate, a transform or a model


@pytest.mark.parametrize("error", ERRORS)
def test_a_lack_of_memory_ends_a_run_and_is_nobodys_failure(error):
    def work(*_):
        raise error

    with pytest.raises(type(error)):
        attempt(work)
    ready = task().prepare(blobs())
    fog = wrap(work, name="Fog")
    with pytest.raises(OutOfMemoryError, match="out of memory on cpu"):
        ready.train(ready.fresh(0), at.Tree().with_node(1, fog, p=1.0), [0.1], 0)
    model = nn.Linear(2, 2)
    with pytest.raises(type(error)):
        has_forward_mode(lambda forward: forward(torch.ones(1, 2)) if forward is model else work(), model)


def test_other_errors_are_no_lack_of_memory():
    assert not lacks_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not lacks_memory(TransformError("Fog raised RuntimeError: out of memory"))
    with pytest.raises(RuntimeError, match="shapes"), task().prepare(blobs()).deterministically():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_model_or_data_that_do_not_fit_are_told_when_the_trainer_is_made(monkeypatch):
    def huge(*_):
        raise ERRORS[1]

    with pytest.raises(OutOfMemoryError, match=r"out of memory on cpu with batches of 16 samples of 3x8x8"):
        task(model=huge).prepare(blobs())
    monkeypatch.setattr("augtree.training.trainer.pictures_on", huge)
    with pytest.raises(OutOfMemoryError, match=r"out of memory on cpu with batches of 16 samples of 3x8x8"):
        task().prepare(blobs())


def test_one_sample_has_no_halves():
    ready = task().prepare(blobs())
    ready.halved = True
    assert len(ready.logits(ready.fresh(0), rows(ready)[:1], Identity())) == 1


@pytest.mark.parametrize("error", ERRORS)
def test_it_is_one_line_wherever_it_is_raised(error, tmp_path, monkeypatch, capsys):
    def work():
        raise error

    with Run.begin(tmp_path, {"version": 1}) as run, pytest.raises(OutOfMemoryError) as caught:
        run.unit("ridge", work)
    assert str(caught.value) == (
        f"out of memory: {error} (while ridge was computed); what is finished is kept: free memory, then"
        f" `augtree resume {tmp_path}`"
    )
    monkeypatch.setattr("augtree.cli.app", work)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err == f"augtree: out of memory: {error}\n"
