"""Log a search for TensorBoard: curves, findings, the policies as pictures. `tensorboard --logdir FOLDER` shows it.

pip install "augtree[train,tensorboard]"
python examples/tensorboard_log.py [FOLDER]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import augtree as at

data = at.data.load("digits", train=200, val=200)
task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=60, batch_size=32)
with TemporaryDirectory() as temporary:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
    at.search_tree(
        data, task, watch=at.loggers.TensorBoard(folder)
    )  # or: augtree search ... --log tensorboard:FOLDER
    print([file.name for file in folder.iterdir()])
