"""Linear evaluation by name: what is trained on features, on which samples, and what it is judged on.

Nothing is ever chosen on a test fold: the penalty C is chosen by cross-validation within the training folds, and the
encoder is the one at the end of its training.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from augtree import models
from augtree.data import Dataset
from augtree.data.splits import UNLABELLED
from augtree.errors import ArgumentError, DataError, need, one_of
from augtree.tasks.contrastive import Contrastive
from augtree.training.metrics import Floats
from augtree.training.sampling import Rows
from augtree.training.state import seed_of

GRID = tuple(10.0**i for i in range(-3, 4))
"""The C to choose from."""
INNER = 5
FOLDS = 10
MAX_ITERATIONS = 1000
MAX_KERNEL_SAMPLES = 10_000
"""Samples whose distances, each to each, are kept in memory: 0.8 GB, and 2 GB for each classifier at a time."""
OPEN = (
    "samples",
    "metric",
    "device",
    "compile",
    "deterministic",
    "precision",
    "judge",
    "neighbours",
    "vote_temperature",
)
"""Settings of a task that no protocol fixes: the machine, how a search judges, and what the folds fix already."""


@dataclass(frozen=True)
class Protocol:
    """How encoders are trained (unless another task is given) and how their features are judged."""

    name: str
    about: str
    classifier: str
    """rbf (an SVM), or linear (logistic regression), or linear-svm; both of them on features of deviation 1."""
    penalties: tuple[float, ...] = GRID
    """The C to choose from, by the training samples alone."""
    folds: int | None = None
    """Stratified folds over all samples; None: the data's own training and test samples."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the task."""

    def task(self, **more: Any) -> Contrastive:
        """The task, with other settings where they are given; options of its model are added to its own."""
        own = self.settings.get("options", {}) if more.get("model", self.model) == self.model else {}
        return Contrastive(**{**self.settings, **more, "options": {**own, **more.get("options", {})}})

    def departures(self, task: Contrastive) -> list[str]:
        """The settings in which a task departs from this protocol's; none where the protocol leaves the task open."""
        if not self.settings:
            return []
        mine, given = (without_weights(each.spec()) for each in (self.task(), task))
        return [f"{name}={given[name]}" for name in given if name not in OPEN and mine.get(name) != given[name]]

    @property
    def model(self) -> str:
        """The model that the protocol asks for."""
        return str(self.settings.get("model", "auto"))

    def is_for(self, domain: str) -> bool:
        """Whether its model takes such samples."""
        return self.model == "auto" or models.find(self.model).domain == domain

    def check(self, task: Contrastive, data: Dataset) -> None:
        """Raise where the task has the protocol's model, and that is for other samples."""
        if task.model == self.model and not self.is_for(data.domain):
            fitting = ", ".join(name for name, protocol in PROTOCOLS.items() if protocol.is_for(data.domain))
            rule = f"must be one of {fitting} for {data.domain}s, which the model {self.model} does not take"
            raise ArgumentError("protocol", rule, self.name)


ADAM = {"optimizer": "adamw", "weight_decay": 0.0, "schedule": "constant", "batch_size": 128}
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "graphcl",
            "GIN 3 x 32, sum pooling, layers side by side, temperature 0.2, Adam 0.01, 20 epochs; RBF SVM, C from"
            " 1e-3 to 1e3 by inner 5-fold; stratified 10-fold",
            "rbf",
            folds=FOLDS,
            settings={
                **ADAM,
                "model": "gin",
                "options": {"layers": 3, "hidden": 32},
                "lr": 0.01,
                "epochs": 20,
                "temperature": 0.2,
                "dim": 96,
                "views": "one",
            },
        ),
        Protocol(
            "tree-paper",
            "residual GCN 3 x 128 on node features and degrees, sum pooling, temperature 0.2, Adam 0.001, 100 epochs;"
            " RBF SVM, C = 1; stratified 10-fold",
            "rbf",
            penalties=(1.0,),
            folds=FOLDS,
            settings={
                **ADAM,
                "model": "resgcn",
                "options": {"layers": 3, "hidden": 128},
                "lr": 0.001,
                "epochs": 100,
                "temperature": 0.2,
                "dim": 128,
            },
        ),
        Protocol(
            "linear", "logistic regression on the training samples, judged on the test samples", "linear", (1.0,)
        ),
        Protocol(
            "svm", "linear SVM, C by inner 5-fold on the training samples, judged on the test samples", "linear-svm"
        ),
    )
}
"""By name. Numbers of two protocols cannot be compared with each other."""


USUAL = {"graph": "graphcl", "image": "linear"}
"""The default protocol."""


def find_protocol(name: str) -> Protocol:
    """A protocol by its name."""
    return PROTOCOLS[one_of("protocol", name, PROTOCOLS)]


def without_weights(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A task's specification without the weights that it begins with."""
    return {**spec, "options": {name: value for name, value in spec["options"].items() if name != "weights"}}


class Fold(NamedTuple):
    """The samples that a classifier is fitted to, and those that it is judged on."""

    train: Rows
    test: Rows


def judged_rows(protocol: Protocol, data: Dataset) -> Rows:
    """The samples to judge by, before any is left out: all with labels, or the data's test samples."""
    return data.indices("test") if protocol.folds is None else np.flatnonzero(data.split != UNLABELLED)


def folds_of(protocol: Protocol, data: Dataset, seen: Rows, seed: int) -> Iterator[Fold]:
    """The folds of one seed; samples whose labels a search has seen are in none of them, neither to fit nor to judge.

    A protocol without folds fits its classifiers to all training samples and leaves out the test samples that were
    seen.
    """
    if data.multilabel:
        raise DataError(f"{data.name}: an evaluation protocol needs one label a sample, and these have several")
    rows = np.setdiff1d(judged_rows(protocol, data), seen)
    if protocol.folds is None:
        if not len(rows):
            raise DataError(
                f"{data.name}: the protocol {protocol.name} needs test samples that were not seen, got none"
            )
        train = data.indices("train")
        if len(np.unique(data.labels.numpy()[train])) < 2:
            raise DataError(f"{data.name}: a classifier needs training samples of at least two classes")
        if len(protocol.penalties) > 1 and fewest_of(data.labels.numpy()[train]) < 2:
            raise DataError(f"{data.name}: a C can be chosen only where each class has at least 2 training samples")
        yield Fold(train, rows)
        return
    labels = data.labels.numpy()[rows]
    fewest = fewest_of(labels)
    if fewest < protocol.folds or len(np.unique(labels)) < 2:
        raise DataError(
            f"{data.name}: {protocol.folds} folds need at least two classes, each with {protocol.folds} samples whose"
            f" labels no search has seen, got {fewest} in the smallest of {len(np.unique(labels))}"
        )
    splitter = need("sklearn.model_selection", "train").StratifiedKFold(
        protocol.folds, shuffle=True, random_state=seed_of(seed, "folds") % 2**32
    )
    for train, test in splitter.split(rows, labels):
        yield Fold(rows[train], rows[test])


def fewest_of(labels: Rows) -> int:
    """The samples of the smallest class."""
    return int(np.unique(labels, return_counts=True)[1].min(initial=len(labels)))


class FoldResult(NamedTuple):
    """The result of one classifier on one fold."""

    accuracy: float
    c: float
    """Its penalty."""


def judge_fold(
    protocol: Protocol, train: tuple[Floats, Rows], test: tuple[Floats, Rows], workers: int = 1
) -> FoldResult:
    """A classifier fitted to some features and labels, judged on others."""
    model = fitted(protocol, *train, workers)
    accuracy = (model.predict(test[0]) == test[1]).mean()
    return FoldResult(float(accuracy), float(model.named_steps["model"].C))


def fitted(protocol: Protocol, features: Floats, labels: Rows, workers: int = 1) -> Any:
    """The protocol's classifier; its C is chosen by cross-validation within these samples."""
    if not np.isfinite(features).all():
        raise ArgumentError("features", "must be finite: the training of the encoder diverged")
    model = need("sklearn.pipeline", "train").Pipeline(steps_of(protocol.classifier))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that has not quite converged is the same every time, too
        penalty = protocol.penalties[0]
        if len(protocol.penalties) > 1:
            small = protocol.classifier == "rbf" and len(features) <= MAX_KERNEL_SAMPLES
            choose = best_rbf if small else partial(best_by_grid, model)
            penalty = choose(features, labels, protocol.penalties, min(INNER, fewest_of(labels)), workers)
        return model.set_params(model__C=penalty).fit(features, labels)


def best_by_grid(
    model: Any, features: Floats, labels: Rows, penalties: Sequence[float], inner: int, workers: int
) -> float:
    """The C with the best mean accuracy over the inner folds; the first of equals."""
    search = need("sklearn.model_selection", "train").GridSearchCV(
        model, {"model__C": list(penalties)}, cv=inner, scoring="accuracy", n_jobs=workers, refit=False
    )
    return float(search.fit(features, labels).best_params_["model__C"])


def best_rbf(features: Floats, labels: Rows, penalties: Sequence[float], inner: int, workers: int) -> float:
    """The same for an RBF SVM, faster: all C of an inner fold share one kernel matrix."""
    distances = squared_distances(features)
    svc = partial(need("sklearn.svm", "train").SVC, kernel="precomputed")

    def accuracies(part: tuple[Rows, Rows]) -> list[float]:
        train, test = part
        kernel = np.exp(-scale_of(features[train]) * distances[:, train])
        mine, others = kernel[train], kernel[test]
        return [svc(C=c).fit(mine, labels[train]).score(others, labels[test]) for c in penalties]

    parts = need("sklearn.model_selection", "train").StratifiedKFold(inner).split(features, labels)
    with ThreadPoolExecutor(workers) as pool:  # libsvm lets go of the interpreter while it fits
        means = np.mean(list(pool.map(accuracies, parts)), axis=0)
    return penalties[int(np.argmax(means))]


def squared_distances(features: Floats) -> Floats:
    """Between all samples, each with each; around their mean, so that little is lost where they lie far out."""
    centred = features - features.mean(axis=0, dtype=np.float64)
    squares = (centred**2).sum(axis=1)
    found: Floats = np.maximum(squares[:, None] + squares - 2 * centred @ centred.T, 0.0)
    return found


def scale_of(features: Floats) -> float:
    """The gamma that scikit-learn calls "scale"."""
    variance = features.var(dtype=np.float64)
    return float(1 / (features.shape[1] * variance)) if variance else 1.0


def steps_of(classifier: str) -> list[tuple[str, Any]]:
    """The classifier, behind a scaler where it is linear."""
    if classifier == "rbf":
        return [("model", need("sklearn.svm", "train").SVC())]
    scaler = need("sklearn.preprocessing", "train").StandardScaler()
    if classifier == "linear":
        model = need("sklearn.linear_model", "train").LogisticRegression(max_iter=MAX_ITERATIONS)
    else:
        model = need("sklearn.svm", "train").LinearSVC(random_state=0)
    return [("scale", scaler), ("model", model)]
