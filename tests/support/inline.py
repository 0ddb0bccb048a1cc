"""Workers without processes."""

from __future__ import annotations

from augtree.runs.executors.base import Executor, Pool, do
from augtree.runs.executors.messages import pack, unpack


class Inline(Executor):
    """Does at once, and packed, what processes would; `begun` has the keys of the jobs."""

    def __init__(self):
        self.begun = []

    def pool(self, work):
        return InlinePool(unpack(pack(work)), self.begun)


class InlinePool(Pool):
    def __init__(self, work, begun):
        self.work, self.begun = work, begun

    def run(self, jobs, common=None, report=None):
        for key, argument in jobs.items():
            self.begun.append(key)
            reply = unpack(pack(do(self.work, key, *unpack(pack((common, argument))))))
            if reply.error is not None:
                raise reply.error
            if report is not None:
                report(key, reply.value)
            yield key, reply.value
