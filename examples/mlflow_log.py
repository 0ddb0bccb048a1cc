"""Log a search with MLflow: twelve lines of your own, here into a local SQLite file.

pip install "augtree[train]" mlflow
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import mlflow

import augtree as at


class MLflow(at.loggers.Logger):
    """Writes into the active MLflow run."""

    def log_numbers(self, numbers, step):
        mlflow.log_metrics(dict(numbers), step=step)

    def log_options(self, options):
        mlflow.log_params(options)

    def log_text(self, name, text, step):
        mlflow.log_text(text, f"{name}/{step}.txt")

    def log_picture(self, name, picture, step):
        mlflow.log_image(picture.permute(1, 2, 0).numpy(), f"{name}/{step}.png")


data = at.data.load("digits", train=200, val=200)
task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=60, batch_size=32)
with TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")  # leave these three lines out for your own server
    mlflow.create_experiment("digits", artifact_location=Path(folder, "artifacts").as_uri())
    mlflow.set_experiment("digits")
    with mlflow.start_run() as run:
        result = at.search_tree(data, task, watch=MLflow())
        mlflow.log_dict({"tree": str(result.tree)}, "tree.json")
    kept = mlflow.get_run(run.info.run_id).data
    print(
        f"{len(kept.metrics)} metrics, {len(kept.params)} parameters; accuracy {kept.metrics['result/accuracy']:.3f}"
    )
