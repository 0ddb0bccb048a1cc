"""Logs of runs for TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from augtree.errors import need
from augtree.loggers.base import Logger


class TensorBoard(Logger):
    """Logs runs for TensorBoard, which `tensorboard --logdir FOLDER` shows; needs the extra `tensorboard`.

    Parameters
    ----------
    folder
        Where the log goes; one for each run, since runs in one folder share their curves.

    Examples
    --------
    >>> import augtree as at
    >>> from tempfile import TemporaryDirectory
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=20, batch_size=16)
    >>> with TemporaryDirectory() as folder:
    ...     trained = at.train(data, task, "randaugment", watch=at.loggers.TensorBoard(folder))

    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = Path(folder)
        self.new_writer = need("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self.writer: Any = None

    def __repr__(self) -> str:
        return f"TensorBoard({str(self.folder)!r})"

    @property
    def open_writer(self) -> Any:
        """The writer, which makes its file when it is first used."""
        if self.writer is None:
            self.writer = self.new_writer(str(self.folder))
        return self.writer

    def log_numbers(self, numbers: Mapping[str, float], step: int) -> None:
        for name, value in numbers.items():
            self.open_writer.add_scalar(name, value, step)

    def log_options(self, options: Mapping[str, Any]) -> None:
        self.log_text("options", json.dumps(options, indent=1, default=str), 0)

    def log_text(self, name: str, text: str, step: int) -> None:
        code = "".join(f"    {line}\n" for line in text.splitlines())  # four spaces: shown as it is
        self.open_writer.add_text(name, code, step)

    def log_picture(self, name: str, picture: Tensor, step: int) -> None:
        self.open_writer.add_image(name, picture, step)

    def flush(self) -> None:
        """Write all that waits, and close the file; what is logged later goes into another file of the folder."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
