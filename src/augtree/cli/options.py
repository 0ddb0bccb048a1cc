"""The options of a data set, a task, a search and the weights, for all the commands that need them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from augtree.cli.app import say
from augtree.cli.fields import arguments_of, docs_of, option_name, options_of, parameter
from augtree.cli.help import HELP_ALL, in_brief
from augtree.cli.reading import OPTION, read
from augtree.cli.values import assignments
from augtree.errors import ArgumentError, one_of
from augtree.evaluation.protocols import PROTOCOLS
from augtree.forests import Weighting
from augtree.runs.spec import restore
from augtree.search.options import SearchOptions, resolve_scorer
from augtree.search.scorers import SCORERS
from augtree.tasks import TASKS
from augtree.training.device import device_of
from augtree.transforms import Chain, Flip, PadCrop

DATA, TASK, SEARCH, WEIGHTS = "The data", "The task", "The search", "The weights of the groups"

Data = Annotated[
    str,
    typer.Argument(
        help="A folder of pictures with index.csv (path,label[,group][,split]) or with one subfolder a class, "
        "a zip of one, or a name (augtree data list): digits, cifar10, NCI1, ...; or a run, for its data and task."
    ),
]
PREPROCESSING: dict[str, Any] = {
    "default": "default",
    "none": None,
    "flip": Flip(),
    "crop": PadCrop(4, fill=0),
    "flip-crop": Chain([Flip(), PadCrop(4, fill=0)]),
}
HELP = {"preprocess": f"What is applied to training samples before the policy: {', '.join(PREPROCESSING)}."}
"""Help for fields whose values have other names here."""
TRAINED_PROTOCOLS = {name: protocol for name, protocol in PROTOCOLS.items() if protocol.settings}
"""The protocols that say how the encoder is trained."""


Command = Callable[..., None]


@dataclasses.dataclass(frozen=True)
class OptionGroup:
    """A group of options, and the argument of a command that is built from them."""

    argument: str
    parameters: tuple[inspect.Parameter, ...]
    build: Callable[..., Any]

    def value(self, values: Mapping[str, Any]) -> Any:
        """The argument, built from the values of the command's options."""
        return call_with_option_names(self.build, self.parameters, values)


def call_with_option_names(
    function: Callable[..., Any], parameters: Iterable[inspect.Parameter], values: Mapping[str, Any]
) -> Any:
    """Call a function with the values of these parameters; an ArgumentError names the option."""
    names = [p.name for p in parameters]
    try:
        return function(**{name: values[name] for name in names})
    except ArgumentError as error:
        if error.field not in names:
            raise
        raise ArgumentError(option_name(error.field), *error.args[1:]) from error


def parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function as keywords, with their annotations; without its **options."""
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    return tuple(
        p.replace(annotation=hints.get(p.name, Any), kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters
    )


def with_parameters(command: Command, parameters: Sequence[inspect.Parameter]) -> Command:
    """The command, with these parameters on the command line."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


# ---- the data


def option(group: str, text: str, *names: str, **more: Any) -> Any:
    """An option in a group of the help page."""
    return typer.Option(*names, help=text, rich_help_panel=group, **more)


def read_data(
    data: Data,
    root: Annotated[
        Path | None, option(DATA, "The folder of named data sets (default: $AUGTREE_DATA, or data).")
    ] = None,
    size: Annotated[int | None, option(DATA, "Crop pictures to a square and scale it to this side.")] = None,
    split_by: Annotated[
        str | None, option(DATA, "Keep samples with the same value in this column (such as patient) in one split.")
    ] = None,
    fill: Annotated[
        int | None,
        option(
            DATA,
            "The grey level for pixels that geometric transforms uncover (default: 128; 0 suits a black background).",
            min=0,
            max=255,
        ),
    ] = None,
    train: Annotated[int | None, option(DATA, "Keep this many training samples.")] = None,
    val: Annotated[int | None, option(DATA, "Keep this many validation samples.")] = None,
    labels: Annotated[
        int | None, option(DATA, "Keep the labels of this many training samples; the others are unlabelled.")
    ] = None,
    groups: Annotated[
        str | None,
        option(DATA, "Other groups: column:NAME of index.csv; for graphs size-degree:4x4, size:4 or degree:4."),
    ] = None,
    merge: Annotated[
        str | None, option(DATA, "nearest: merge groups that are too small with the most similar group.")
    ] = None,
    cache: Annotated[
        Path | None,
        option(DATA, "Where decoded pictures are kept (default: from 256 MiB, $AUGTREE_CACHE or ~/.cache/augtree)."),
    ] = None,
    data_option: Annotated[
        list[str] | None, option(DATA, "An option of a named set, NAME=VALUE (repeatable).", OPTION)
    ] = None,
    download: Annotated[bool, option(DATA, "Download the missing files of a named set.", "--download")] = False,
    **more: Any,
) -> Any:
    """Read the data set."""
    options: dict[str, Any] = {"size": size, "split_by": split_by, "train": train, "val": val, "labels": labels}
    options |= {"fill": fill, "groups": groups, "merge": merge} | ({} if cache is None else {"cache": cache})
    return read(data, root, download=download, reader_options=data_option or (), **options, **more)


def with_data_options(command: Command) -> Command:
    """Add the options of a data set to a command, which receives them as **options."""
    return with_parameters(command, [*parameters_of(command), *parameters_of(read_data)[1:]])


def data_set(**values: Any) -> Any:
    """Read the data set and print a summary of it."""
    found = read_data(**values)
    say(f"{found}")
    for note in found.notes:
        say(f"  {note}")
    return found


# ---- the task


def task_options() -> tuple[inspect.Parameter, ...]:
    """An option for each field of any task; the help says which tasks have it."""
    parameters: dict[str, inspect.Parameter] = {}
    docs = {kind: docs_of(owner) for kind, owner in TASKS.items()}
    kinds = f"{', '.join(TASKS)}; or a protocol's settings: {', '.join(TRAINED_PROTOCOLS)}"
    help_text = f"What a model is trained for: {kinds} (default: classification)."
    task_kind = parameter("task_kind", str | None, help_text, TASK)
    parameters["task_kind"] = task_kind.replace(annotation=Annotated[str | None, option(TASK, help_text, "--task")])
    for kind, owner in TASKS.items():
        hints = typing.get_type_hints(owner)
        for field in dataclasses.fields(owner):
            if field.name not in {"options", *parameters}:
                having = {name: cls for name, cls in TASKS.items() if field.name in docs[name]}
                of = "" if len(having) == len(TASKS) else f"{', '.join(having).capitalize()}: "
                text = HELP.get(field.name) or docs[kind][field.name]
                text = f"{of}{text.rstrip('.')}{default_text(field.name, having)}."
                hint = str | None if field.name in ("model", "preprocess") else hints[field.name]
                parameters[field.name] = parameter(field.name, hint, text, TASK)
    return (*parameters.values(), *parameters_of(machine_options))


def default_text(name: str, owners: Mapping[str, type]) -> str:
    """The default of a field, and of the tasks that have another."""
    defaults = {kind: {f.name: f.default for f in dataclasses.fields(cls)}[name] for kind, cls in owners.items()}
    (_, usual), *others = defaults.items()
    if usual is None or isinstance(usual, bool):
        return ""
    differing = "".join(f"; {kind}: {value}" for kind, value in others if value != usual)
    return f" (default: {usual}{differing})"


def machine_options(
    weights: Annotated[Path | None, option(TASK, "Begin with these weights (safetensors).")] = None,
    threads: Annotated[int, option(TASK, "CPU threads; small models are fastest with one.", min=1)] = 1,
) -> None:
    """The options of a task that are not its fields."""


TASK_OPTIONS = task_options()


def task_arguments(
    task_kind: str | None = None, weights: Path | None = None, threads: int = 1, **values: Any
) -> dict[str, Any]:
    """The kind of a task, and the arguments that are given for it."""
    torch.set_num_threads(threads)
    device_of(values.get("device") or "auto")
    if weights is not None and not weights.is_file():
        raise ArgumentError("weights", "must be an existing file", str(weights))
    if values.get("steps") is not None and values.get("epochs") is not None:
        raise ArgumentError("epochs", "must be left out where --steps is given", values["epochs"])
    preprocess = values.pop("preprocess", None)
    arguments: dict[str, Any] = {}
    for owner in TASKS.values():
        arguments |= arguments_of(owner, values)
    if preprocess is not None:
        arguments["preprocess"] = PREPROCESSING[one_of("preprocess", preprocess, PREPROCESSING)]
    if weights is not None:
        arguments["options"] = {"weights": str(weights)}
    return {"kind": task_kind, **arguments}


def make_task(kind: str | None = None, **arguments: Any) -> Any:
    """The task of a kind, or with the settings of a protocol."""
    kind = one_of("--task", kind or "classification", [*TASKS, *TRAINED_PROTOCOLS])
    if kind in TRAINED_PROTOCOLS:
        return TRAINED_PROTOCOLS[kind].task(**known_fields("contrastive", arguments))
    return TASKS[kind](**known_fields(kind, arguments))


def known_fields(kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, all of which the task must have."""
    known = {field.name for field in dataclasses.fields(TASKS[kind])}
    for name, value in arguments.items():
        if name not in known:
            raise ArgumentError(option_name(name), f"must be left out for --task {kind}", value)
    return arguments


# ---- the search and the weights


SET = Annotated[
    list[str] | None,
    option(SEARCH, "An option of the scorer, NAME=VALUE (repeatable; --help-all lists them).", "--set"),
]


def search_group(**options: Any) -> OptionGroup:
    """The options of a search, which make its arguments; `options` are those of `options_of`."""
    skip = ("workers", "executor", *options.pop("skip", ()))
    parameters = options_of(SearchOptions, SEARCH, skip=skip, **options)
    scorer_option = inspect.Parameter("scorer_option", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=SET)

    def build(**values: Any) -> dict[str, Any]:
        options = arguments_of(SearchOptions, values)
        if values["scorer_option"]:
            options["scorer"] = scorer_by_name(options.get("scorer", "cooldown"), values["scorer_option"])
        SearchOptions(**options)
        return options

    return OptionGroup("options", (*parameters, scorer_option), build)


def scorer_by_name(name: str, texts: Iterable[str]) -> Any:
    """A scorer with its options."""
    resolve_scorer(name)
    return SCORERS[name](**assignments("--set", texts, typing.get_type_hints(SCORERS[name])))


def make_weighting(**values: Any) -> dict[str, Any]:
    """The options of the weights that are given, checked; the method decides the others."""
    options = arguments_of(Weighting, values)
    Weighting(**options)
    return options


PAPER_WEIGHTING = {"start": "proportions; paper: uniform", "d": "cosine; paper: raw"}
WEIGHTING = OptionGroup(
    "weighting", tuple(options_of(Weighting, WEIGHTS, default_texts=PAPER_WEIGHTING)), make_weighting
)


# ---- a command with such options


def with_options(
    *groups: OptionGroup, check: Command = lambda: None, task: Callable[..., Any] = make_task
) -> Callable[[Command], Command]:
    """Add the options of a data set, a task and further groups to a command.

    Cheap checks come first (the groups, `check`, the task), because reading data may be slow. `check` receives some
    of the options, or all of them as **values. If the data argument is a run's folder, data and task are restored
    from it, and a command with a `run` parameter receives the folder.
    """
    task_group = OptionGroup("task", TASK_OPTIONS, lambda **values: task(**task_arguments(**values)))
    data_group = OptionGroup("data", parameters_of(read_data), lambda **values: data_set(**values))

    def decorated(command: Command) -> Command:
        built = {"data", "task", "run", *(group.argument for group in groups)}
        own = [p for p in parameters_of(command) if p.name not in built]
        parameters = [p for group in (data_group, task_group, *groups) for p in group.parameters] + own
        checked = parameters if accepts_all(check) else parameters_of(check)

        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            arguments = {group.argument: group.value(values) for group in groups}
            call_with_option_names(check, checked, values)
            run = Path(values["data"])
            is_run = (run / "spec.json").is_file()
            if is_run:
                data, task_ = data_and_task_of_run(run, (data_group, task_group), values)
            else:
                task_ = task_group.value(values)  # before the data, which may be slow to read
                data = data_group.value(values)
            arguments |= {p.name: values[p.name] for p in own}
            if "run" in inspect.signature(command).parameters:
                arguments["run"] = run if is_run else None
            command(data=data, task=task_, **arguments)

        del wrapped.__wrapped__
        listed = [*map(in_brief, parameters[: -len(own) or None]), *own, HELP_ALL]
        return with_parameters(wrapped, listed)

    return decorated


def accepts_all(function: Callable[..., Any]) -> bool:
    """Whether a function takes any keyword."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def data_and_task_of_run(folder: Path, groups: Iterable[OptionGroup], values: Mapping[str, Any]) -> tuple[Any, Any]:
    """The data and the task of a run; an ArgumentError for options that would change them."""
    for p in (p for group in groups for p in group.parameters):
        if p.name not in ("data", "threads") and values[p.name] != p.default:
            name = "--task" if p.name == "task_kind" else option_name(p.name)
            raise ArgumentError(name, f"must be left out: data and task are those of {folder}", values[p.name])
    torch.set_num_threads(values["threads"])
    run = restore(folder)
    say(f"The data and the task of {folder}: {run.data}")
    return run.data, run.task
