"""Ray: the same bytes as in this process, also where workers are killed."""

import json
import signal
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from augtree.comparison import compare, resume
from augtree.errors import ArgumentError, MissingExtraError, RunError
from augtree.runs.executors import Ray, ray
from augtree.search import search_tree
from augtree.tasks import Classification
from augtree.transforms import Cutout, Flip, Posterize, Space
from support.blobs import POLICIES, blobs
from support.blobs import task as blobs_task
from support.jobs import add
from support.searches import QUICK, corners, linear_model

TASK = Classification(model=linear_model, steps=20, batch_size=64, lr=0.02, device="cpu")
SPACE = Space([Posterize(0.2), Cutout(0.3)], basics=[Flip(1.0)])
JOBS = {name: number for number, name in enumerate("abcdef")}


def need_ray():
    """Ray, or no test; not by `importorskip`, since some of Ray's settings are read when it is imported."""
    if find_spec("ray") is None:
        pytest.skip('needs pip install "augtree[ray]"')
    return ray.need_ray()


@pytest.fixture(scope="module")
def cluster():
    package = need_ray()
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # for the models of tests
        package.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield package
        package.shutdown()
    signal.signal(signal.SIGTERM, handler)


@contextmanager
def killed_at(package, *numbers):
    """Kill the workers that get these jobs, counted in the order in which they are sent."""
    count = []
    with pytest.MonkeyPatch.context() as patch:
        send = ray.RayPool.send

        def sent(pool, worker, key, common, argument):
            send(pool, worker, key, common, argument)
            count.append(key)
            if len(count) in numbers:
                package.kill(worker.actor)

        patch.setattr(ray.RayPool, "send", sent)
        yield count


def test_jobs_are_done_in_order_by_workers_of_the_cluster(cluster):
    with Ray().pool(add) as pool:
        assert pool.most == 2  # the cluster's CPUs
        assert dict(pool.run(JOBS, 10)) == {name: 10 + number for name, number in JOBS.items()}
        with pytest.raises(ValueError, match="13 is no number of mine"):
            list(pool.run({"a": 1, "b": 13}))
    assert cluster.is_initialized()  # it was not begun for the pool


def memory_of(common, argument):
    """The name of the memory that holds the data."""
    address = common["samples"].data_ptr()
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    return next(line[5] for line in lines if is_within(address, *line[0].split("-")))


def is_within(address, low, high):
    return int(low, 16) <= address < int(high, 16)


def test_tensors_arrive_without_a_copy(cluster):
    with Ray(workers=1).pool(memory_of) as pool:
        ((_, found),) = pool.run({"a": 0}, {"samples": torch.ones(1 << 20)})
    assert "plasma" in found


def kept(folder):
    """The files of a result, without times."""
    skipped = ("history.csv", "run.sqlite", "lock.sqlite", "checkpoints")
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in skipped}
    if "result.json" in files:
        found = json.loads(files["result.json"])
        files["result.json"] = {**found, "cost": {**found["cost"], "seconds": 0}}
    return files


def test_a_search_is_the_same_on_ray_with_a_killed_worker(cluster, tmp_path):
    how = {"data": corners(), "task": TASK, "space": SPACE, "scorer": QUICK, "depth": 2, "budget": 6}
    search_tree(**how, out=tmp_path / "serial")
    with killed_at(cluster, 4) as sent:
        search_tree(**how, out=tmp_path / "ray", executor=Ray(workers=2))
    assert len(sent) > 10
    assert "model.safetensors" in kept(tmp_path / "serial")
    assert kept(tmp_path / "ray") == kept(tmp_path / "serial")


def test_a_comparison_begun_on_ray_goes_on_in_processes_to_the_same_bytes(cluster, tmp_path):
    data, task = blobs(), blobs_task(metric="loss")
    compare(data, task, POLICIES, seeds=2, out=tmp_path / "serial")
    with killed_at(cluster, 3), pytest.raises(RunError, match=r"a worker died at train/b/1, after 0 retries \("):
        compare(data, task, POLICIES, seeds=2, out=tmp_path / "ray", executor=Ray(workers=1, retries=0))
    assert not (tmp_path / "ray" / "comparison.json").exists()
    resume(tmp_path / "ray", data=data, task=task, workers=2)
    assert kept(tmp_path / "ray") == kept(tmp_path / "serial")


def test_what_a_worker_cannot_read_is_told(cluster):
    def get(reply):
        raise cluster.exceptions.RayTaskError("do", "Traceback:\nModuleNotFoundError: mine", ImportError("no mine"))

    pool = object.__new__(ray.RayPool)
    pool.ray = SimpleNamespace(get=get, exceptions=cluster.exceptions)
    with pytest.raises(RunError, match=r"every machine must have augtree .* could not read its work \(no mine\)"):
        pool.read("a reply")


def test_gpus_are_for_trainings_on_gpus(cluster):
    with pytest.raises(ArgumentError, match="gpus_per_task must be 0 where this process trains on the CPU"):
        compare(blobs(), blobs_task(), POLICIES, seeds=1, executor=Ray(gpus_per_task=0.5))
    with pytest.raises(ArgumentError, match="gpus_per_task must be above 0 where models train on a GPU"):
        Ray().check_device("cuda")


def test_a_cluster_that_has_no_room_is_told(cluster, monkeypatch):
    monkeypatch.setattr(ray, "START_SECONDS", 0.2)
    with (
        Ray(workers=1, gpus_per_task=1).pool(add) as pool,
        pytest.raises(
            RunError, match=r"no worker began within 0 s: one needs 1 CPU, 1 GPU, the cluster has 2 CPU, 0 "
        ),
    ):
        list(pool.run(JOBS))


def test_a_cluster_that_does_not_answer_is_told(monkeypatch):
    need_ray()
    monkeypatch.setattr(ray, "CONNECT_SECONDS", 0.2)
    with pytest.raises(ArgumentError, match=r"address must be a Ray cluster that answers within .*'127.0.0.1:1'"):
        ray.check_reachable("127.0.0.1:1")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'needs ray.*pip install "augtree\[ray\]"'):
        compare(blobs(), blobs_task(), POLICIES, seeds=1, executor="ray")
