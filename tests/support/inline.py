"""Workers without processes."""

from __future__ import annotations

from concurrent.futures import Future

from augtree.search import branches


class Inline:
    """A pool that does at once, and packed, what its processes would."""

    def __init__(self, trainer):
        self.trainer = trainer

    def submit(self, function, *arguments):
        branches.worker_trainer[:] = [self.trainer]
        future = Future()
        future.set_result(function(*arguments))
        return future
