"""Memory that runs out, as an error that says what can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from augtree.errors import AugtreeError, OutOfMemoryError, lacks_memory


@contextmanager
def memory_explained(place: Callable[[], str]) -> Iterator[None]:
    """A lack of memory as an OutOfMemoryError that says where, and what can be done."""
    try:
        yield
    except Exception as error:
        if isinstance(error, AugtreeError) or not lacks_memory(error):
            raise
        rule = "use a smaller batch_size (--batch-size) or model"
        raise OutOfMemoryError(f"out of memory on {place()}: {rule}") from error
