"""Runs: searches and trainings that are kept in a folder and can be resumed."""
