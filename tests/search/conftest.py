"""What the tests of searches share."""

from __future__ import annotations

import pytest
from cuts import cut, quick_disk  # noqa: F401 - fixtures
from toys import whatever_is_best

from augtree.search.scorers import density, retrain


@pytest.fixture(scope="module")
def full_trees():
    """`sure=0` keeps whatever is best, so that trees grow to their full depth and a change anywhere shows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (density, retrain):
            patch.setattr(module, "verdict", whatever_is_best)
        yield


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):  # noqa: F811
    pass
