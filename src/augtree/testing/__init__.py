"""Contracts that ship with the package: hold your own transforms and data sets to them."""

from augtree.testing.dataset_checks import check_dataset
from augtree.testing.transform_checks import check_transform

__all__ = ["check_dataset", "check_transform"]
