"""Runs: searches, comparisons and evaluations that are kept in a folder and can be resumed."""

from augtree.runs import executors as executors
