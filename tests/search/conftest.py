"""What the tests of searches share."""

from __future__ import annotations

import os
import sqlite3

import pytest
from toys import quickly, whatever_is_best

from augtree.runs import faults
from augtree.search.scorers import density, retrain


class CutError(BaseException):
    """A power cut within the process: nothing catches it."""


@pytest.fixture
def cut(monkeypatch):
    """`cut(n)` ends the search at the n-th point that it passes (of one name, if given); returns those passed."""

    def at(count, name=None):
        passed = []

        def point(this):
            if name in (None, this):
                passed.append(this)
                if len(passed) == count:
                    raise CutError(this)

        monkeypatch.setattr(faults, "point", point)
        return passed

    at.Error = CutError
    return at


@pytest.fixture(scope="module")
def full_trees():
    """`sure=0` keeps whatever is best, so that trees grow to their full depth and a change anywhere shows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (density, retrain):
            patch.setattr(module, "verdict", whatever_is_best)
        yield


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """No test waits for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(sqlite3, "connect", quickly(sqlite3.connect))
