"""Finished models as files for other programs: safetensors, torch.export and ONNX, normalisation included."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from augtree.errors import ArgumentError, AugtreeError, need, one_of
from augtree.exports.files import write_new
from augtree.exports.finished import Finished, read_finished

DYNAMIC: dict[str, dict[str, dict[int, str]]] = {
    "image": {"pictures": {0: "pictures"}},
    "graph": {"x": {0: "nodes"}, "edge_index": {1: "edges"}, "counts": {0: "graphs"}},
}
"""The sizes that may differ from call to call."""


def export_model(
    run: str | Path,
    to: str = "torch-export",
    out: str | Path | None = None,
    *,
    model: Callable[[], nn.Module] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the finished model of a run as a file for other programs.

    Pictures go in as uint8 [N,C,H,W], since the normalisation is part of the model; graphs as node features, edges
    and the number of nodes of each graph. Out come logits, or the features of an encoder. The names of the classes
    are in the file.

    Parameters
    ----------
    run
        The folder of a run with a finished model: a search, a forest or a training.
    to
        safetensors (weights and what they belong to), torch-export (.pt2, which needs torch alone), or onnx.
    out
        The file; by default model.safetensors, model.pt2 or model.onnx in the current folder.
    model
        The function that made the run's model, where that is not one of augtree's.
    overwrite
        Replace the file if it exists.

    Returns
    -------
    The file.

    Examples
    --------
    >>> import tempfile
    >>> import augtree as at
    >>> folder = Path(tempfile.mkdtemp())
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=2, batch_size=16, device="cpu")
    >>> _ = at.train(at.data.load("digits", train=40, val=40), task, out=folder / "run")
    >>> program = torch.export.load(at.export_model(folder / "run", out=folder / "digits.pt2"))
    >>> program.module()(torch.zeros(5, 1, 8, 8, dtype=torch.uint8)).shape
    torch.Size([5, 10])

    """
    suffix, write, _ = MODEL_TARGETS[one_of("to", to, MODEL_TARGETS)]
    path = Path(f"model{suffix}" if out is None else out)
    finished = read_finished(run, model)
    write_new(path, lambda: write(finished), overwrite=overwrite)
    return path


def as_safetensors(finished: Finished) -> bytes:
    """The weights, with what they belong to as metadata."""
    save = need("safetensors.torch", "train").save
    content: bytes = save(dict(finished.model.state_dict()), metadata={"augtree": json.dumps(finished.about)})
    return content


def as_torch_export(finished: Finished) -> bytes:
    """A program of torch.export, with what is known about it beside it."""
    file = io.BytesIO()
    torch.export.save(exported(finished), file, extra_files={"augtree.json": json.dumps(finished.about)})
    return file.getvalue()


def as_onnx(finished: Finished) -> bytes:
    """An ONNX model, with what is known about it as metadata."""
    need("onnxscript", "export")
    with explained("ONNX"), quiet_exporter():
        program = torch.onnx.export(
            exported(finished), input_names=[*DYNAMIC[finished.domain]], output_names=["outputs"], verbose=False
        )
        assert program is not None  # noqa: S101 - only the older exporter gives None
        proto = program.model_proto
    entry = proto.metadata_props.add()
    entry.key, entry.value = "augtree", json.dumps(finished.about)
    content: bytes = proto.SerializeToString()
    return content


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Keep the exporter from warning that torchvision is missing, which no model here needs."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def exported(finished: Finished) -> torch.export.ExportedProgram:
    """The model as a program of torch.export, checked on more samples than it was made with."""
    module, example = finished.module(), finished.example(2)
    sizes = {
        name: {dim: torch.export.Dim(size) for dim, size in dims.items()}
        for name, dims in DYNAMIC[finished.domain].items()
    }
    with explained("torch.export"), torch.no_grad():
        program = torch.export.export(module, example, dynamic_shapes=sizes)
        inputs = finished.example(3)
        torch.testing.assert_close(program.module()(*inputs), module(*inputs), rtol=1e-3, atol=1e-4)
    return program


@contextmanager
def explained(target: str) -> Iterator[None]:
    """What a library cannot export is an error of one line; its warnings are for its own authors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except AugtreeError:
        raise
    except Exception as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ArgumentError("model", f"must be one that {target} can take ({reason})") from error


def loading_example(path: Path, to: str) -> str:
    """Five lines that load an exported model."""
    return MODEL_TARGETS[to][2].format(path=str(path))


SAFETENSORS_EXAMPLE = """\
import json, safetensors.torch
from augtree import models
about = json.loads(safetensors.safe_open({path!r}, "pt").metadata()["augtree"])
model = models.build(about["network"], models.Inputs(**about["inputs"]), **about["options"]).eval()
model.load_state_dict(safetensors.torch.load_file({path!r}))  # takes pictures / 255, minus mean, over std"""
TORCH_EXPORT_EXAMPLE = """\
import json, torch
about = {{"augtree.json": ""}}
model = torch.export.load({path!r}, extra_files=about).module()
classes = json.loads(about["augtree.json"])["classes"]
outputs = model(pictures)  # uint8 [N,C,H,W]; graphs: model(batch.x, batch.edge_index, batch.ptr.diff())"""
ONNX_EXAMPLE = """\
import json, onnxruntime
session = onnxruntime.InferenceSession({path!r})
classes = json.loads(session.get_modelmeta().custom_metadata_map["augtree"])["classes"]
outputs = session.run(None, {{"pictures": pictures}})[0]  # a uint8 array [N,C,H,W]
# graphs: {{"x": x, "edge_index": edge_index, "counts": numbers_of_nodes}}"""
MODEL_TARGETS: dict[str, tuple[str, Callable[[Finished], bytes], str]] = {
    "safetensors": (".safetensors", as_safetensors, SAFETENSORS_EXAMPLE),
    "torch-export": (".pt2", as_torch_export, TORCH_EXPORT_EXAMPLE),
    "onnx": (".onnx", as_onnx, ONNX_EXAMPLE),
}
"""By name: the end of the file's name, what writes it, and how it is loaded."""
