"""The folder of a protein data set: its files, and how they are written."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

KIND, FORMAT = "augtree proteins", 1
MANIFEST, BAD_FILES, LABELS, PROTEINS = "manifest.json", "bad_files.csv", "labels.npz", "proteins.csv"
WORK, PLAN = ".parts", "plan.json"
"""Where the work in progress is; gone once the manifest is there."""
NODE_FILES = {"residues": np.uint8, "plddt": np.float32, "up_degree": np.int32}
EDGE_FILES = {"offset": np.int32}
ARRAYS = ("ids", "num_nodes", "num_edges", *NODE_FILES, *EDGE_FILES)
"""Each in its own .npy file, which can be mapped into memory."""


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def npz_bytes(values: Mapping[str, Any]) -> bytes:
    """Arrays in one file; texts as texts."""
    content = io.BytesIO()
    arrays: Any = {name: np.asarray(value) if len(value) else np.empty(0, np.str_) for name, value in values.items()}
    np.savez_compressed(content, **arrays)
    return content.getvalue()
