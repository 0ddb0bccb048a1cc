"""What a data set, a task, a search and the weights are on the command line, for all the commands that need them."""

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
from augtree.cli.reading import OPTION, read
from augtree.cli.values import assignments
from augtree.errors import ArgumentError, one_of
from augtree.evaluation.protocols import PROTOCOLS
from augtree.forests import Weighting
from augtree.runs.spec import restore
from augtree.search.options import SearchOptions, scorer_options
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
class Part:
    """Some options of a command, and what is made of them: the command's argument of that name."""

    argument: str
    parameters: tuple[inspect.Parameter, ...]
    make: Callable[..., Any]

    def made(self, given: Mapping[str, Any]) -> Any:
        """The argument, from all that is given; an error names the option."""
        names = [p.name for p in self.parameters]
        try:
            return self.make(**{name: given[name] for name in names})
        except ArgumentError as error:
            if error.field not in names:
                raise
            raise ArgumentError(option_name(error.field), *error.args[1:]) from error


def parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function, by name, with their annotations; not its **options."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    return tuple(p.replace(annotation=hints.get(p.name, Any), kind=inspect.Parameter.KEYWORD_ONLY) for p in found)


def with_options(parameters: Iterable[inspect.Parameter]) -> Callable[[Command], Command]:
    """A command that takes these parameters as its **options."""

    def decorated(command: Command) -> Command:
        return with_parameters(command, [*parameters_of(command), *parameters])

    return decorated


def with_parameters(command: Command, parameters: Sequence[inspect.Parameter]) -> Command:
    """The command, for the command line with these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


# ---- the data


def option(group: str, text: str, *names: str, **more: Any) -> Any:
    """An option in a group of the help page."""
    return typer.Option(*names, help=text, rich_help_panel=group, **more)


def read_data(
    data: Data,
    root: Annotated[Path | None, option(DATA, "Where named sets lie (default: $AUGTREE_DATA, or data).")] = None,
    size: Annotated[int | None, option(DATA, "The side of the square that pictures are cut to.")] = None,
    split_by: Annotated[
        str | None, option(DATA, "Make the split so that this column's values stay together.")
    ] = None,
    fill: Annotated[
        int | None, option(DATA, "What geometry uncovers: 0 suits pictures on black (default: 128).", min=0, max=255)
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
    **more: Any,
) -> Any:
    """The data set."""
    options: dict[str, Any] = {"size": size, "split_by": split_by, "train": train, "val": val, "labels": labels}
    options |= {"fill": fill, "groups": groups, "merge": merge} | ({} if cache is None else {"cache": cache})
    return read(data, root, download=download, own=data_option or (), **options, **more)


DATA_OPTIONS = parameters_of(read_data)[1:]


def data_set(**given: Any) -> Any:
    """The data set, of which something is said."""
    found = read_data(**given)
    say(f"{found}")
    for note in found.notes:
        say(f"  {note}")
    return found


# ---- the task


def task_options() -> tuple[inspect.Parameter, ...]:
    """An option for each field of any task; the help says which tasks have it."""
    found: dict[str, inspect.Parameter] = {}
    docs = {kind: docs_of(owner) for kind, owner in TASKS.items()}
    kinds = f"{', '.join(TASKS)}; or a protocol's settings: {', '.join(TRAINED_PROTOCOLS)}"
    help_text = f"What a model is trained for: {kinds} (default: classification)."
    task_kind = parameter("task_kind", str | None, help_text, TASK)
    found["task_kind"] = task_kind.replace(annotation=Annotated[str | None, option(TASK, help_text, "--task")])
    for kind, owner in TASKS.items():
        hints = typing.get_type_hints(owner)
        for field in dataclasses.fields(owner):
            if field.name not in {"options", *found}:
                having = {name: cls for name, cls in TASKS.items() if field.name in docs[name]}
                of = "" if len(having) == len(TASKS) else f"{', '.join(having).capitalize()}: "
                text = HELP.get(field.name) or docs[kind][field.name]
                text = f"{of}{text.rstrip('.')}{default_text(field.name, having)}."
                hint = str | None if field.name in ("model", "preprocess") else hints[field.name]
                found[field.name] = parameter(field.name, hint, text, TASK)
    return (*found.values(), *parameters_of(machine_options))


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
    """Options of a task that are no fields of it."""


TASK_OPTIONS = task_options()


def task_arguments(
    task_kind: str | None = None, weights: Path | None = None, threads: int = 1, **given: Any
) -> dict[str, Any]:
    """The kind of a task, and those of its arguments that are not left to it."""
    torch.set_num_threads(threads)
    device_of(given.get("device") or "auto")
    if weights is not None and not weights.is_file():
        raise ArgumentError("weights", "must be a file that is there", str(weights))
    preprocess = given.pop("preprocess", None)
    found: dict[str, Any] = {}
    for owner in TASKS.values():
        found |= arguments_of(owner, given)
    if preprocess is not None:
        found["preprocess"] = PREPROCESSING[one_of("preprocess", preprocess, PREPROCESSING)]
    if weights is not None:
        found["options"] = {"weights": str(weights)}
    return {"kind": task_kind, **found}


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
    option(SEARCH, "An option of the scorer, such as looks=0.3,0.6 (repeatable).", "--set"),
]


def search_part(skip: Iterable[str] = (), defaults: Mapping[str, Any] | None = None) -> Part:
    """The options of a search: the arguments that are given, checked."""
    own = options_of(SearchOptions, SEARCH, skip=skip, defaults=defaults or {})
    scorer_option = inspect.Parameter("scorer_option", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=SET)

    def make(**given: Any) -> dict[str, Any]:
        options = arguments_of(SearchOptions, given)
        if given["scorer_option"]:
            options["scorer"] = scorer_by_name(options.get("scorer", "cooldown"), given["scorer_option"])
        SearchOptions(**options)
        return options

    return Part("options", (*own, scorer_option), make)


def scorer_by_name(name: str, texts: Iterable[str]) -> Any:
    """A scorer with its options."""
    scorer_options(name)
    return SCORERS[name](**assignments("--set", texts, typing.get_type_hints(SCORERS[name])))


def make_weighting(**given: Any) -> dict[str, Any]:
    """The options of the weights that are given, checked; the others are left to the method."""
    options = arguments_of(Weighting, given)
    Weighting(**options)
    return options


WEIGHTING = Part("weighting", tuple(options_of(Weighting, WEIGHTS)), make_weighting)


# ---- a command of such parts


def takes(
    *parts: Part, check: Command = lambda: None, task: Callable[..., Any] = make_task
) -> Callable[[Command], Command]:
    """A command that gets a data set, a task and the arguments of `parts`, with all the options that make them.

    Data may take long to read: the parts, the task and `check`, which takes some of the command's own options, raise
    before that for what is wrong with them. Where the data is a run, that is the command's argument `run`.
    """
    task_part = Part("task", TASK_OPTIONS, lambda **given: task(**task_arguments(**given)))
    data_part = Part("data", parameters_of(read_data), lambda **given: data_set(**given))

    def decorated(command: Command) -> Command:
        handled = {"data", "task", "run", *(part.argument for part in parts)}
        own = [p for p in parameters_of(command) if p.name not in handled]
        parameters = [p for part in (data_part, task_part) for p in part.parameters]
        parameters += [p for part in parts for p in part.parameters if p.name not in {q.name for q in own}] + own

        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            arguments = {part.argument: part.made(given) for part in parts}
            Part("", parameters_of(check), check).made(given)
            run = Path(given["data"])
            is_run = (run / "spec.json").is_file()
            if is_run:
                data, task_ = data_and_task_of_run(run, (data_part, task_part), given)
            else:
                task_ = task_part.made(given)  # before the data, which may take long
                data = data_part.made(given)
            arguments |= {p.name: given[p.name] for p in own}
            if "run" in inspect.signature(command).parameters:
                arguments["run"] = run if is_run else None
            command(data=data, task=task_, **arguments)

        del wrapped.__wrapped__
        return with_parameters(wrapped, parameters)

    return decorated


def data_and_task_of_run(folder: Path, parts: Iterable[Part], given: Mapping[str, Any]) -> tuple[Any, Any]:
    """The data and the task of a run; no option may ask for others."""
    for p in (p for part in parts for p in part.parameters):
        if p.name not in ("data", "threads") and given[p.name] != p.default:
            name = "--task" if p.name == "task_kind" else option_name(p.name)
            raise ArgumentError(name, f"must be left out: data and task are those of {folder}", given[p.name])
    torch.set_num_threads(given["threads"])
    run = restore(folder)
    say(f"The data and the task of {folder}: {run.data}")
    return run.data, run.task
