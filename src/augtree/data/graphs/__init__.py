"""Graphs in files."""
