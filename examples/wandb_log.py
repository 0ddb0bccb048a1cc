"""Log a search with Weights & Biases: a few lines of your own, here offline.

pip install "augtree[train]" wandb
"""

from tempfile import TemporaryDirectory

import wandb

import augtree as at


class WandB(at.loggers.Logger):
    """Writes into a run of Weights & Biases."""

    def __init__(self, run):
        super().__init__()
        self.run = run
        run.define_metric("*", step_metric="done")  # the steps are those of the search

    def log_numbers(self, numbers, step):
        self.run.log({**numbers, "done": step})

    def log_options(self, options):
        self.run.config.update(options, allow_val_change=True)

    def log_picture(self, name, picture, step):
        self.run.log({name: wandb.Image(picture.permute(1, 2, 0).numpy()), "done": step})


data = at.data.load("digits", train=200, val=200)
task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=60, batch_size=32)
with TemporaryDirectory() as folder:
    with wandb.init(project="augtree", mode="offline", dir=folder) as run:  # leave mode and dir out for your account
        result = at.search_tree(data, task, watch=WandB(run))
        print(f"accuracy {run.summary['result/accuracy']:.3f}, {len(run.config.keys())} options")
