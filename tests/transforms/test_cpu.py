"""The CPU's way against the kernels by themselves, which test_kernels compares with Pillow: any size, any threads."""

import os
import threading
import warnings

import numpy as np
import pytest
import torch

import augtree as at
from augtree.keys import Key
from augtree.transforms import (
    Chain,
    ColorDistortion,
    Flip,
    GaussianBlur,
    QuarterTurn,
    RandomCrop,
    TrivialAugment,
    cpu,
    kernels,
)
from augtree.transforms.automatic import KINDS
from augtree.transforms.base import apply_to_pictures
from augtree.transforms.pictures import Pictures, Shape, Work
from support import pillow_reference as pillow
from support.pillow_reference import SIZES

SHAPES = [(channels, *size) for channels in (1, 3, 5) for size in [*SIZES, (97, 101)]]


@pytest.fixture
def three_threads(monkeypatch):
    """Small parts, so that there are several for each thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr(cpu, "CHUNK_BYTES", 5000)
    monkeypatch.setattr(cpu, "FEW_BYTES", 0)
    yield
    torch.set_num_threads(before)


def by_kernels_alone(plan, pictures):
    """Work by work, each on all its rows at once."""
    out = pictures.clone()
    for work in (work for slot in plan for work in slot):
        params = [torch.from_numpy(param) for param in work.params]
        if work.partners is not None:
            params.insert(0, pictures[torch.from_numpy(work.partners)])
        out[torch.from_numpy(work.rows)] = work.kernel(out[torch.from_numpy(work.rows)], *params)
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_every_operation_at_all_magnitudes(shape, threads, three_threads):
    torch.set_num_threads(threads)
    pictures = pillow.pictures(*shape)
    kinds = [kind for name, kind in KINDS.items() if name != "Color" or shape[0] in (1, 3)]
    steps = [RandomCrop(), GaussianBlur(), QuarterTurn(), Flip(), at.transforms.Sobel(), at.transforms.Rotation()]
    key = Key.of(0, np.arange(len(pictures)))
    for transform in [*(kind(m) for kind in kinds for m in (0.2, 1.0)), *steps]:
        plan = transform.draw(key, Shape(*pictures.shape))
        same = torch.equal(Pictures(pictures).do(plan), by_kernels_alone(plan, pictures))
        assert same, str(transform)


def test_shears_and_shifts_further_than_the_picture():
    pictures = pillow.pictures(3, 9, 14)
    rng = np.random.default_rng(0)
    count, one = len(pictures), 1 << 16
    for reach in (one, 20 * one):
        b, c, d, f = rng.integers(-reach, reach, (4, count))
        form = np.arange(count) % 3  # lines move, columns move, neither
        columns = [one, b * (form == 0), np.choose(form, [c, 40000, 70000 + abs(c)]), d * (form != 0), one, f]
        table = torch.from_numpy(np.stack([np.broadcast_to(column, count) for column in columns], axis=1))
        work = Work(kernels.warp, np.arange(count), (table.numpy(), np.arange(count)))
        expected = kernels.warp(pictures, table, torch.arange(count))
        assert torch.equal(Pictures(pictures).do([[work]]), expected)
        assert [len(rows) for _, rows in cpu.forms(kernels.warp, [table])] == [8, 8, 8]


POLICIES = [
    TrivialAugment(),
    at.transforms.RandAugment(),
    Chain([RandomCrop(), ColorDistortion(), (GaussianBlur(), 0.5), at.transforms.SamplePairing(0.5)]),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("form", [torch.uint8, torch.float32])
def test_the_same_bytes_on_any_number_of_threads(policy, form, noise, three_threads):
    batch = noise if form == torch.uint8 else noise / 255
    several = policy(batch, seed=1)
    torch.set_num_threads(1)
    assert torch.equal(several, policy(batch, seed=1))
    torch.set_num_threads(5)  # more than there are
    with torch.inference_mode():
        assert torch.equal(several, policy(batch, seed=1))


def test_parts_run_on_other_threads_each_with_one_thread_for_torch(noise, three_threads, monkeypatch):
    seen = set()
    act = cpu.act

    def watched(*arguments):
        seen.add((threading.current_thread().name.split("_")[0], torch.get_num_threads()))
        act(*arguments)

    monkeypatch.setattr(cpu, "act", watched)
    TrivialAugment()(noise, seed=0)
    assert seen == {("augtree", 1)}


def test_threads_that_begin_later_have_the_number_that_was_set(noise, three_threads, monkeypatch):
    monkeypatch.setattr(cpu, "_WORKERS", None)
    TrivialAugment()(noise, seed=0)
    found = []
    thread = threading.Thread(target=lambda: found.append((torch.ones(99999) + 1, torch.get_num_threads())))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), found[0][1]) == (3, 3)


def test_a_users_function_stays_on_the_callers_thread_and_in_order(noise, three_threads):
    seen = set()

    def darker(picture):
        seen.add(threading.current_thread())
        return picture // 2

    policy = Chain([Flip(), at.wrap(darker, name="Darker"), at.transforms.Invert(1.0)])
    done = policy(noise, seed=0)
    assert seen == {threading.current_thread()}
    assert torch.equal(done, 255 - Chain([Flip()])(noise, seed=0) // 2)


def test_without_further_threads_the_work_is_done_all_the_same(noise, three_threads, monkeypatch):
    whole = TrivialAugment()(noise, seed=0)

    def none(count):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(cpu, "workers", none)
    assert torch.equal(TrivialAugment()(noise, seed=0), whole)


def test_a_failure_on_a_thread_is_the_callers(three_threads):
    def fail():
        raise ValueError("on a thread")

    done, running = [], cpu.Running(torch.zeros(9))
    for task in [fail, *[lambda: done.append(1)] * 9]:
        running.begin(task)
    with pytest.raises(ValueError, match="on a thread"):
        running.wait()
    assert len(done) == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own(noise, three_threads):
    pictures, key = noise[:8, :, :16, :16].contiguous(), Key.of(0, np.arange(8))
    whole = apply_to_pictures(TrivialAugment(), pictures, key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a process with threads is forked: that is the point
        child = os.fork()
    if not child:
        same = torch.equal(apply_to_pictures(TrivialAugment(), pictures, key), whole)
        os._exit(0 if same and cpu._WORKERS is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
