"""The files that TensorBoard reads, read by TensorBoard's own reader."""

import io

import numpy as np
import pytest
from PIL import Image

import augtree as at
from augtree.loggers.base import pictures_of
from augtree.transforms import Invert
from support.blobs import blobs

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
TASK = at.tasks.Classification(model="cnn", options={"width": 2}, steps=40, batch_size=16)


def read(folder):
    found = accumulator.EventAccumulator(str(folder))
    found.Reload()
    return found


def test_numbers_texts_and_pictures_are_in_the_file(tmp_path):
    logger = at.loggers.TensorBoard(tmp_path / "log")
    data = blobs()
    trained = at.train(data, TASK, Invert(1.0), watch=logger)
    assert logger.writer is None
    found = read(tmp_path / "log")
    assert [event.step for event in found.Scalars("training/loss")] == [20, 40]
    (accuracy,) = found.Scalars("result/test/accuracy")
    assert accuracy.value == pytest.approx(trained.metrics["test"]["accuracy"])
    (picture,) = found.Images("policy")
    pixels = np.asarray(Image.open(io.BytesIO(picture.encoded_image_string)))
    assert np.array_equal(pixels.transpose(2, 0, 1), pictures_of(Invert(1.0), data).numpy())
    (options,) = found.Tensors("options/text_summary")
    assert b'"task/steps": 40' in options.tensor_proto.string_val[0]


def test_a_second_run_goes_on_in_the_same_folder(tmp_path):
    logger = at.loggers.TensorBoard(tmp_path)
    for seed in (0, 1):
        at.train(blobs(), TASK, seed=seed, watch=logger)
    assert len(list(tmp_path.iterdir())) == 2
    assert [event.step for event in read(tmp_path).Scalars("training/loss")] == [20, 40, 20, 40]


def test_a_folder_that_cannot_be_written_costs_the_log_and_not_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="TensorBoard.* watches the run no more, since it failed"):
        assert at.train(blobs(), TASK, watch=at.loggers.TensorBoard(tmp_path / "file")).metrics


def test_without_tensorboard_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(at.AugtreeError, match=r'pip install "augtree\[tensorboard\]"'):
        at.loggers.TensorBoard(tmp_path)
