"""What operations draw."""

from augtree.keys import Key
from augtree.transforms import operation


def drawn(transform, count=4000, shape=(3, 32, 32), seed=0):
    """The parameters that a transform draws."""
    key = Key.of(seed, range(count))
    level = transform.magnitude - min(operation.BIN, transform.magnitude) * key.uniform(operation.LEVEL)
    return transform.values(level, operation.signs(key), transform.limit)
