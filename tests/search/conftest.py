"""What the tests of searches share."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from augtree.search.scorers import density, retrain
from support.searches import whatever_is_best
from support.tree_runs import SCORERS, search


@contextmanager
def best_kept():
    """`sure=0` keeps whatever is best, so that trees grow to their full depth and a change anywhere shows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (density, retrain):
            patch.setattr(module, "confirmed", whatever_is_best)
        yield


@pytest.fixture(scope="module")
def full_trees():
    """In a module of tests, trees grow to their full depth."""
    with best_kept():
        yield


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A folder with an uninterrupted run by each scorer."""
    folder = tmp_path_factory.mktemp("whole")
    with best_kept():
        for name in SCORERS:
            search(folder / name, name)
    return folder


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass
