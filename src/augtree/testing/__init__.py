"""Contracts that ship with the package, for your own transforms and data sets.

check_transform   20 checks: repeatable, picklable, input untouched, no leak between samples, effect grows, ...
check_dataset     12 checks: splits disjoint, labels in range, no sample in two splits, stable fingerprint, ...

Both return the names of the checks, or raise a CheckError that lists every failure.
"""

from augtree.testing.dataset_checks import check_dataset
from augtree.testing.transform_checks import check_transform

__all__ = ["check_dataset", "check_transform"]
