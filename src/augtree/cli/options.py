"""What a data set and a task are on the command line, for all the commands that need them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from augtree.cli.app import say
from augtree.cli.reading import OPTION, read
from augtree.errors import ArgumentError, one_of

Data = Annotated[
    str,
    typer.Argument(
        help="A folder of pictures with index.csv (path,label[,group][,split]) or with one subfolder a class, "
        "a zip of one, or a name (augtree data list): digits, cifar10, NCI1, ...; or a run, for its data and task."
    ),
]
DATA, TASK = "The data", "The task"


def option(group: str, text: str, *names: str, **more: Any) -> Any:
    """An option in a group of the help page."""
    return typer.Option(*names, help=text, rich_help_panel=group, **more)


def data_set(
    data: Data,
    root: Annotated[Path | None, option(DATA, "Where named sets lie (default: $AUGTREE_DATA, or data).")] = None,
    size: Annotated[int | None, option(DATA, "The side of the square that pictures are cut to.")] = None,
    split_by: Annotated[
        str | None, option(DATA, "Make the split so that this column's values stay together.")
    ] = None,
    fill: Annotated[
        int | None, option(DATA, "What geometry uncovers: 0 suits pictures on black (default: 128).", min=0, max=255)
    ] = None,
    train: Annotated[int | None, option(DATA, "Keep so many training samples.")] = None,
    val: Annotated[int | None, option(DATA, "Keep so many validation samples.")] = None,
    labels: Annotated[
        int | None, option(DATA, "Keep the labels of so many training samples; the others are unlabelled.")
    ] = None,
    groups: Annotated[
        str | None,
        option(DATA, "Other groups: column:NAME of index.csv; for graphs size-degree:4x4, size:4 or degree:4."),
    ] = None,
    merge: Annotated[
        str | None, option(DATA, "nearest: join groups that are too small with the one most like them.")
    ] = None,
    cache: Annotated[
        Path | None,
        option(DATA, "Where decoded pictures are kept (default: from 256 MiB, $AUGTREE_CACHE or ~/.cache/augtree)."),
    ] = None,
    data_option: Annotated[
        list[str] | None, option(DATA, "An option of a named set, NAME=VALUE; may be repeated.", OPTION)
    ] = None,
    download: Annotated[bool, option(DATA, "Fetch a named set that is not there.", "--download")] = False,
) -> Any:
    """The data set that is asked for."""
    asked: dict[str, Any] = {
        "size": size,
        "split_by": split_by,
        "train": train,
        "val": val,
        "labels": labels,
        "fill": fill,
    }
    asked |= {"groups": groups, "merge": merge} | ({} if cache is None else {"cache": cache})
    found = read(data, root, download=download, own=data_option or (), **asked)
    say(f"{found}")
    for note in found.notes:
        say(f"  {note}")
    return found


NAMES = {"task_kind": "--task", "compile_model": "--compile"}
"""Options that are not called as their argument is."""


def task_options(
    task_kind: Annotated[
        str | None,
        option(TASK, "classification (default), contrastive, graphcl, tree-paper or semisupervised.", "--task"),
    ] = None,
    model: Annotated[
        str | None,
        option(TASK, "wrn-16-4, resnet18, resnet50, cnn, gin, resgcn, ...; auto (default) chooses by size."),
    ] = None,
    epochs: Annotated[float | None, option(TASK, "The length of a training (default: 80).")] = None,
    steps: Annotated[int | None, option(TASK, "The length of a training in steps, instead of epochs.")] = None,
    batch_size: Annotated[int | None, option(TASK, "Samples in a step (default: 128; contrastive: 256).")] = None,
    optimizer: Annotated[str | None, option(TASK, "sgd (default) or adamw.")] = None,
    lr: Annotated[float | None, option(TASK, "The highest learning rate.")] = None,
    weight_decay: Annotated[float | None, option(TASK, "The weight decay.")] = None,
    label_smoothing: Annotated[float | None, option(TASK, "From 0 (default) to below 1; not contrastive.")] = None,
    temperature: Annotated[float | None, option(TASK, "Contrastive: of the similarities (default: 0.5).")] = None,
    dim: Annotated[int | None, option(TASK, "Contrastive: numbers that the loss sees (default: 128).")] = None,
    judge: Annotated[
        str | None, option(TASK, "Contrastive: knn (default), ridge, alignment-uniformity or contrastive.")
    ] = None,
    views: Annotated[str | None, option(TASK, "Contrastive: both (default), or one beside the plain sample.")] = None,
    samples: Annotated[
        str | None, option(TASK, "Contrastive: train on train (default), or on all samples, without labels.")
    ] = None,
    ratio: Annotated[
        int | None, option(TASK, "Semi-supervised: unlabelled samples to a labelled (default: 7).")
    ] = None,
    weight: Annotated[float | None, option(TASK, "Semi-supervised: what consistency counts (default: 1).")] = None,
    sharpen: Annotated[float | None, option(TASK, "Semi-supervised: a target's temperature (default: 0.4).")] = None,
    confidence: Annotated[
        float | None, option(TASK, "Semi-supervised: the chance above which a target teaches (default: 0.8).")
    ] = None,
    tsa: Annotated[str | None, option(TASK, "Semi-supervised: signal annealing, none, linear, log or exp.")] = None,
    include_labelled: Annotated[
        bool | None, option(TASK, "Semi-supervised: labelled samples are among the unlabelled too (default).")
    ] = None,
    augment_labelled: Annotated[
        bool | None, option(TASK, "Semi-supervised: the policy is for labelled samples too (default: not).")
    ] = None,
    metric: Annotated[str | None, option(TASK, "accuracy (default), error, f1, auroc or loss.")] = None,
    preprocess: Annotated[
        str | None, option(TASK, "Before the policy: default (the data set's own), none, flip, crop or flip-crop.")
    ] = None,
    weights: Annotated[Path | None, option(TASK, "Begin with these weights (safetensors).")] = None,
    device: Annotated[str | None, option(TASK, "auto (default), cpu or cuda.")] = None,
    threads: Annotated[int, option(TASK, "CPU threads; small models are fastest with one.", min=1)] = 1,
    compile_model: Annotated[bool, option(TASK, "Compile the model (CUDA).", "--compile")] = False,
    deterministic: Annotated[bool, option(TASK, "On CUDA: repeat to the bit. The CPU always does.")] = False,
    precision: Annotated[
        str | None, option(TASK, "float32, bfloat16, or auto (default): bfloat16 on CUDA, float32 on the CPU.")
    ] = None,
) -> dict[str, Any]:
    """What is asked of a task: its kind, and those of its arguments that are not left to it.

    A further argument of a task stands here under its own name; which tasks have it is known from their fields.
    """
    import torch

    from augtree.training.trainer import device_of

    torch.set_num_threads(threads)
    device_of(device or "auto")
    if weights is not None and not weights.is_file():
        raise ArgumentError("--weights", "must be a file that is there", str(weights))
    given = {
        "model": model,
        "epochs": epochs,
        "steps": steps,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "lr": lr,
        "weight_decay": weight_decay,
        "label_smoothing": label_smoothing,
        "temperature": temperature,
        "dim": dim,
        "judge": judge,
        "views": views,
        "samples": samples,
        "ratio": ratio,
        "weight": weight,
        "sharpen": sharpen,
        "confidence": confidence,
        "tsa": tsa,
        "include_labelled": include_labelled,
        "augment_labelled": augment_labelled,
        "metric": metric,
        "device": device,
        "compile": compile_model or None,
        "deterministic": deterministic or None,
        "precision": precision,
    }
    out: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    out |= {} if preprocess is None else {"preprocess": preprocessing(preprocess)}
    out |= {} if weights is None else {"options": {"weights": str(weights)}}
    return {"kind": task_kind, **out}


def task(kind: str | None = None, **given: Any) -> Any:
    """The task that is asked for."""
    from augtree.evaluation.protocols import PROTOCOLS
    from augtree.tasks import TASKS

    protocols = {name: protocol for name, protocol in PROTOCOLS.items() if protocol.settings}
    kind = one_of("--task", kind or "classification", [*TASKS, *protocols])
    if kind in protocols:
        return protocols[kind].task(**task_fields("contrastive", given))
    return TASKS[kind](**task_fields(kind, given))


def task_fields(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, all of which the task must have."""
    from augtree.tasks import TASKS

    known = {field.name for field in dataclasses.fields(TASKS[kind])}
    for name, value in given.items():
        if name not in known:
            raise ArgumentError(f"--{name.replace('_', '-')}", f"must be left out for --task {kind}", value)
    return given


def preprocessing(name: str) -> Any:
    """A preprocessing by name."""
    from augtree.transforms import Chain, Flip, PadCrop

    known: dict[str, Any] = {
        "default": "default",
        "none": None,
        "flip": Flip(),
        "crop": PadCrop(4, fill=0),
        "flip-crop": Chain([Flip(), PadCrop(4, fill=0)]),
    }
    if name not in known:
        raise ArgumentError("--preprocess", f"must be one of {', '.join(known)}", name)
    return known[name]


Command = Callable[..., None]


def on_data_and_task(check: Command, task_of: Callable[..., Any] = task) -> Callable[[Command], Command]:
    """A command that gets a data set and a task, and all the options that make them.

    Data may take long to read, so `check`, which takes some of the command's own options, raises before that for what
    is wrong with them. `task_of` makes what the command gets as its task, from what `task_options` gives.
    """
    makers: tuple[Callable[..., Any], ...] = (data_set, task_options)

    def decorated(command: Command) -> Command:
        own = parameters_of(command)[2:]

        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            parts = [{name: given.pop(name) for name in inspect.signature(maker).parameters} for maker in makers]
            check(**{name: given[name] for name in inspect.signature(check).parameters})
            run = Path(parts[0]["data"])
            is_run = (run / "spec.json").is_file()
            if any(p.name == "run" for p in own):
                given["run"] = run if is_run else None
            command(*(of_run(run, parts) if is_run else made(parts, task_of)), **given)

        parameters = [p for maker in makers for p in parameters_of(maker)] + [p for p in own if p.name != "run"]
        wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        del wrapped.__wrapped__
        return wrapped

    return decorated


def made(parts: list[dict[str, Any]], task_of: Callable[..., Any] = task) -> tuple[Any, Any]:
    """The data and the task; the task first, since it is checked at once."""
    asked = task_of(**task_options(**parts[1]))
    return data_set(**parts[0]), asked


def of_run(folder: Path, parts: list[dict[str, Any]]) -> tuple[Any, Any]:
    """The data and the task of a run; nothing else may be asked of them."""
    import torch

    from augtree.policies.codec import Reader
    from augtree.runs.store import read_spec
    from augtree.search.search import data_again, task_again

    makers: tuple[Callable[..., Any], ...] = (data_set, task_options)
    for maker, part in zip(makers, parts, strict=True):
        for name, parameter in inspect.signature(maker).parameters.items():
            if name not in ("data", "threads") and part[name] != parameter.default:
                option_name = NAMES.get(name, f"--{name.replace('_', '-')}")
                raise ArgumentError(option_name, f"must be left out: data and task are those of {folder}", part[name])
    torch.set_num_threads(parts[1]["threads"])
    spec = read_spec(folder)
    asked = task_again(spec["task"], Reader(folder / "spec.json", ()))
    data = data_again(spec["data"], folder)
    say(f"The data and the task of {folder}: {data}")
    return data, asked


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, by name, with their annotations."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [p.replace(annotation=hints.get(p.name, Any), kind=inspect.Parameter.KEYWORD_ONLY) for p in found]
