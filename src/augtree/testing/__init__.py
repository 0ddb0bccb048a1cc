"""Contracts that ship with the package: hold your own transforms to them."""

from augtree.testing.transform_checks import check_transform

__all__ = ["check_transform"]
