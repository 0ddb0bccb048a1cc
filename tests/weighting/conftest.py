"""What the tests of forests share."""

import os
import sqlite3

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """No test waits for the disk."""

    def connected(place, connect=sqlite3.connect, **options):
        store = connect(place, **options)
        store.execute("PRAGMA synchronous = OFF")
        return store

    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(sqlite3, "connect", connected)
