import pytest

from support.reports import Made


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Small runs by name, each made once."""
    return Made(tmp_path_factory.mktemp("runs"))
