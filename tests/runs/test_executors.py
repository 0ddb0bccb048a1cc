"""Executors by themselves: order, duplicates, deaths, failures, interruptions."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from augtree.errors import ArgumentError, RunError
from augtree.runs.executors import Processes, Ray, Serial, executor_of
from augtree.runs.executors.base import Death, Reply, Worker, WorkerPool
from augtree.runs.executors.messages import sendable_error
from support.jobs import BrokenPipeline, Unreadable, add, dies, meet, own_error

JOBS = {name: number for number, name in enumerate("abcdef")}


class Scripted(WorkerPool):
    """Workers that reply as a script says: a function from the present jobs, by worker, to replies."""

    def __init__(self, script, most=2, retries=1):
        super().__init__(most, retries)
        self.script, self.sent, self.begun = script, [], 0

    def begin(self, count):
        for _ in range(count):
            worker = Worker()
            worker.key, worker.name = None, self.begun
            self.begun += 1
            self.workers.append(worker)

    def send(self, worker, key, common, argument):
        self.sent.append((worker.name, key, common, argument))

    def receive(self):
        return self.script(self)

    def worker_at(self, key):
        return next(worker for worker in self.workers if worker.key == key)


def last_first(pool):
    """The worker that got its job last is the first to reply."""
    worker = max((worker for worker in pool.workers if worker.key), key=lambda w: list(JOBS).index(w.key))
    return [(worker, Reply(worker.key, worker.key.upper()))]


def test_values_come_in_order_whatever_ends_first():
    pool, ended = Scripted(last_first), []
    found = list(pool.run(JOBS, 7, lambda key, value: ended.append((key, value))))
    assert found == [(key, key.upper()) for key in "abcdef"]
    assert ended == [(key, key.upper()) for key in "bcdefa"]
    assert [sent[1:] for sent in pool.sent] == [(key, 7, number) for key, number in JOBS.items()]
    assert {worker for worker, *_ in pool.sent} == {0, 1}


def test_there_are_no_more_workers_than_jobs_and_none_without_jobs():
    pool = Scripted(last_first, most=100)
    assert list(pool.run({})) == []
    assert pool.begun == 0
    list(pool.run({"a": 1, "b": 2, "c": 3}))
    assert pool.begun == 3


def test_late_duplicates_and_replies_to_earlier_runs_are_ignored():
    def script(pool):
        return [reply for one in last_first(pool) for reply in (one, (one[0], Reply("a", "late")), one)]

    reported = []
    pool = Scripted(script, most=1)
    assert dict(pool.run({"a": 1, "b": 2}, report=lambda *done: reported.append(done))) == {"a": "A", "b": "B"}
    assert reported == [("a", "A"), ("b", "B")]


def test_jobs_of_a_run_that_was_given_up_are_not_taken_for_those_of_another():
    values, pool = iter(range(10)), Scripted(lambda pool: [(pool.worker_at("a"), Reply("a", next(values)))])
    first = pool.run({"a": 1, "b": 1})
    assert next(first) == ("a", 0)
    first.close()  # the other worker is still at b

    def script(pool):
        worker = next(worker for worker in reversed(pool.workers) if worker.key)
        return [(worker, Reply(worker.key, next(values)))]

    pool.script = script
    assert list(pool.run({"a": 1, "b": 1})) == [("a", 3), ("b", 2)]  # 1 came from there


def test_the_job_of_a_dead_worker_is_given_to_another():
    deaths = []

    def script(pool):
        (worker, reply), *_ = last_first(pool)
        if worker.name in (1, 2):
            deaths.append(worker.key)
            return [(worker, Death("SIGKILL"))]
        return [(worker, reply)]

    pool = Scripted(script, retries=2)
    assert list(pool.run(JOBS)) == [(key, key.upper()) for key in "abcdef"]
    assert deaths == ["b", "b"]
    assert pool.begun == 4


@pytest.mark.parametrize("retries", [0, 2])
def test_deaths_have_a_limit_for_each_job(retries):
    def script(pool):
        worker = next(worker for worker in pool.workers if worker.key)
        return [(worker, Death("SIGKILL") if worker.key == "b" else Reply(worker.key, "value"))]

    pool = Scripted(script, most=1, retries=retries)
    run = pool.run(JOBS)
    assert next(run) == ("a", "value")
    with pytest.raises(RunError, match=rf"a worker died at b, after {retries} retries \(SIGKILL\).* resume the run"):
        next(run)
    assert pool.begun == retries + 1


def test_what_others_finish_before_the_error_of_a_dead_worker_is_reported():
    def script(pool):
        worker = max((w for w in pool.workers if w.key), key=lambda w: "acb".index(w.key))
        return [(worker, Death("SIGKILL") if worker.key == "b" else Reply(worker.key, "value"))]

    reported = []
    run = Scripted(script, retries=0).run({"a": 1, "b": 2, "c": 3}, report=lambda key, _: reported.append(key))
    assert next(run) == ("a", "value")
    with pytest.raises(RunError, match="a worker died at b, after 0 retries"):
        next(run)
    assert reported == ["c", "a"]


def test_workers_that_die_at_the_start_now_and_then_do_not_add_up():
    def script(pool):
        worker = pool.workers[0]
        if worker.key == "":
            pool.starts += 1
            return [(worker, Death("SIGKILL") if pool.starts % 2 else Reply(""))]
        return [(worker, Reply(worker.key, "value"))]

    pool = Scripted(script, most=1, retries=1)
    pool.starts, pool.begin = 0, lambda count: pool.workers.extend(Worker() for _ in range(count))
    pool.send = lambda *sent: None
    for _ in range(3):
        assert dict(pool.run({"a": 1})) == {"a": "value"}
        pool.workers.clear()  # the machine is taken away
    assert pool.starts == 6


def test_workers_that_cannot_begin_have_a_limit_too():
    def script(pool):
        return [(pool.workers[0], Death("SIGKILL"))]

    pool = Scripted(script, most=1, retries=2)
    pool.begin = lambda count: pool.workers.extend(Worker() for _ in range(count))
    with pytest.raises(RunError, match="a worker died while it began, after 2 retries"):
        list(pool.run(JOBS))


def test_a_job_that_raises_does_so_in_its_turn():
    def script(pool):
        ((worker, reply),) = last_first(pool)
        return [(worker, Reply("b", error=ValueError("no")) if worker.key == "b" else reply)]

    run = Scripted(script).run(JOBS)
    assert next(run) == ("a", "A")
    with pytest.raises(ValueError, match="no"):
        next(run)


# ---- in this process and in others


def test_processes_do_what_this_process_does():
    found, begun, processes = {}, set(), Processes(2)
    with Serial().pool(add) as here, processes.pool(add) as there:
        for common in (10, 20):
            for worker in there.workers:
                os.kill(worker.process.pid, signal.SIGINT)  # Ctrl-C in a terminal goes to all
            found[common] = [list(pool.run(JOBS, common)) for pool in (here, there)]
            begun = begun or {worker.process.pid for worker in there.workers}
        with pytest.raises(ValueError, match="13 is no number of mine") as caught:
            list(there.run({"a": 1, "b": 13}))
        workers = [worker.process for worker in there.workers]
    assert {worker.pid for worker in workers} == begun
    assert [key for key, _ in found[10][0]] == list("abcdef")
    assert found[10][0] == found[10][1] != found[20][0] == found[20][1]
    assert "In a worker:\n" in caught.value.__notes__[0]
    assert "jobs.py" in caught.value.__notes__[0]
    assert len(workers) == 2
    assert not any(worker.is_alive() for worker in workers)


def test_jobs_are_done_side_by_side(tmp_path):
    with Processes(2).pool(meet) as pool:
        assert dict(pool.run({"a": "b", "b": "a"}, tmp_path)) == {"a": "b", "b": "a"}


def test_what_is_not_taken_is_not_begun():
    done = []

    def work(common, argument):
        done.append(argument)
        return argument

    run = Serial().pool(work).run(JOBS, report=lambda *_: None)
    next(run)
    run.close()
    assert done == [0]


def test_a_killed_process_changes_nothing(tmp_path):
    jobs = {"a": 0, "b": 2, "c": 0}
    with Processes(2).pool(dies) as pool:
        for key, argument in jobs.items():
            assert list(pool.run({key: argument}, tmp_path / key)) == [(key, "done")]
    assert (tmp_path / "b").read_text() == "xxx"
    with (
        Processes(1, retries=1).pool(dies) as pool,
        pytest.raises(RunError, match=r"a worker died at c, after 1 retries \(SIGKILL\)"),
    ):
        list(pool.run({"c": 5}, tmp_path / "d"))
    assert (tmp_path / "d").read_text() == "xx"


def test_an_interruption_ends_all_processes():
    workers = []

    def interrupted():
        with Processes(2).pool(add) as pool:
            for _ in pool.run(JOBS):
                workers.extend(worker.process for worker in pool.workers)
                raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(workers) == 2
    assert not any(worker.is_alive() for worker in workers)
    assert time.monotonic() - begin < 30


def test_what_cannot_be_sent_or_received_is_told():
    with pytest.raises(ArgumentError, match="workers must be 1 where the task or the data cannot be sent"):
        Processes(2).pool(lambda common, argument: argument)
    with pytest.raises(ArgumentError, match="workers must be 1 where a policy cannot be sent"):
        Processes(2).check_sendable("a policy", lambda: None)
    Serial().check_sendable("a policy", lambda: None)
    with Processes(1).pool(Unreadable()) as pool, pytest.raises(ValueError, match="no number"):
        list(pool.run(JOBS))
    with Processes(1).pool(own_error) as pool, pytest.raises(RuntimeError, match="BrokenPipeline: 0 and a"):
        list(pool.run(JOBS))
    error = BrokenPipeline(1, 2)
    assert str(sendable_error(error)) == "BrokenPipeline: 1 and 2"


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from augtree.runs.executors import Processes
from support.jobs import sleep
def kill(*first):
    print(*(worker.process.pid for worker in pool.workers), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    pool = Processes(2).pool(sleep)
    list(pool.run({"a": 1, "b": 60}, report=kill))
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    command = [sys.executable, str(script), str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40)  # busy workers hold its output
    assert done.returncode == -9
    workers = done.stdout.split()
    ends = time.monotonic() + 20
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < ends
        time.sleep(0.02)
    assert len(workers) == 2


def is_running(pid):
    """Whether a process runs, and is not a dead one that waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


UNGUARDED = """
import sys
sys.path.insert(0, sys.argv[1])
from augtree.runs.executors import Processes
from support.jobs import add
with Processes(2).pool(add) as pool:
    print(list(pool.run({"a": 1})))
"""


def test_a_script_without_a_guard_is_told_about_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    command = [sys.executable, str(script), str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith('(see above); a script needs `if __name__ == "__main__":`, got 2')


def test_an_executor_is_a_value_a_name_or_a_number_of_processes():
    assert executor_of(None) == Serial()
    assert executor_of(None, 3) == executor_of(Processes(3)) == Processes(workers=3)
    assert executor_of("ray") == Ray()
    assert Processes().most == os.cpu_count()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: executor_of("ray", 2), "workers must be left out where an executor is given"),
        (lambda: executor_of("slurm"), "executor must be one of serial, processes, ray"),
        (lambda: executor_of(None, 0), "workers must be a whole number from 1"),
        (lambda: Processes(0), "workers must be a whole number from 1"),
        (lambda: Processes(retries=-1), "retries must be a whole number from 0"),
        (lambda: Ray(workers=0), "workers must be a whole number from 1"),
        (lambda: Ray(address="head"), "address must be auto, local or HOST:PORT, got 'head'"),
        (lambda: Ray(address="ray://head:10001"), "address must be auto, local or HOST:PORT"),
        (lambda: Ray(gpus_per_task=-1), r"gpus_per_task must be a number in \[0, 64\]"),
    ],
)
def test_rules_of_executors(make, problem):
    with pytest.raises(ArgumentError, match=problem):
        make()
