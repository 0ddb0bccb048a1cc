"""What the tests of searches share."""

from __future__ import annotations

import pytest

from augtree.search.scorers import density, retrain
from support.searches import whatever_is_best


@pytest.fixture(scope="module")
def full_trees():
    """`sure=0` keeps whatever is best, so that trees grow to their full depth and a change anywhere shows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (density, retrain):
            patch.setattr(module, "verdict", whatever_is_best)
        yield


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass
