"""A search that is stopped and resumed ends as if it had not been stopped, byte for byte."""

from pathlib import Path
from tempfile import TemporaryDirectory

import augtree as at
from augtree.search.trunk_events import TrunkTrained

data = at.data.load("digits", train=200, val=200)
task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=60, batch_size=32)


def stop(event):
    """Stop as Ctrl-C does, in the middle of the training."""
    if isinstance(event, TrunkTrained) and event.steps == 30:
        raise KeyboardInterrupt


with TemporaryDirectory() as folder:
    stopped, whole = Path(folder) / "stopped", Path(folder) / "whole"
    try:
        at.search_tree(data, task, out=stopped, watch=stop)
    except KeyboardInterrupt:
        print("stopped; what was finished is kept in", stopped.name)
    at.resume(stopped)  # or: augtree resume FOLDER
    at.search_tree(data, task, out=whole)
    same = [
        (stopped / name).read_bytes() == (whole / name).read_bytes() for name in ("tree.json", "model.safetensors")
    ]
print("the same policy and model:", all(same))
assert all(same)
