import numpy as np
import pytest

from augtree.data import from_arrays
from augtree.errors import ArgumentError, DataError
from augtree.evaluation import protocols
from augtree.evaluation.protocols import (
    GRID,
    PROTOCOLS,
    Protocol,
    find_protocol,
    fitted,
    folds_of,
    judge_fold,
    squared_distances,
)
from augtree.policies.presets import find
from support.blobs import blobs
from support.contrastive import graphs

NONE = np.zeros(0, np.int64)
GRAPHCL = PROTOCOLS["graphcl"]


def points(count=120, seed=0):
    """Two clouds in a plane."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    return rng.normal(size=(count, 2)) + 3 * labels[:, None], labels


def test_folds_are_disjoint_stratified_and_complete():
    data = graphs(80)
    found = list(folds_of(GRAPHCL, data, NONE, 3))
    assert len(found) == 10
    assert np.array_equal(np.sort(np.concatenate([fold.test for fold in found])), np.arange(80))
    for train, test in found:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 80
        assert np.bincount(data.labels[test]).tolist() == [4, 4]


def test_folds_depend_on_the_seed_alone():
    data = graphs(80)
    once, again, other = (list(folds_of(GRAPHCL, data, NONE, seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(once, again, strict=True))
    assert not all(np.array_equal(a.test, b.test) for a, b in zip(once, other, strict=True))


def test_what_was_seen_is_in_no_fold():
    data, seen = graphs(80), np.arange(10, 50)
    for train, test in folds_of(GRAPHCL, data, seen, 0):
        assert not (set(train) | set(test)) & set(seen)
        assert len(train) + len(test) == 40
    hidden = graphs(160).with_labels(20)
    unlabelled = set(hidden.indices("unlabelled"))
    assert unlabelled
    for train, test in folds_of(GRAPHCL, hidden, NONE, 0):
        assert not (set(train) | set(test)) & unlabelled


def test_without_folds_the_data_s_own_split():
    (fold,) = folds_of(PROTOCOLS["linear"], blobs(), NONE, 0)
    assert np.array_equal(fold.train, np.arange(48))
    assert np.array_equal(fold.test, np.arange(64, 80))
    (fold,) = folds_of(PROTOCOLS["svm"], blobs(), np.arange(70), 0)
    assert np.array_equal(fold.test, np.arange(70, 80))


@pytest.mark.parametrize(
    ("data", "seen", "protocol", "message"),
    [
        (graphs(80), np.arange(70), "graphcl", "10 folds need .* got 5 in the smallest of 2"),
        (graphs(80), np.arange(80), "graphcl", "got 0 in the smallest of 0"),
        (blobs(test=0), NONE, "linear", "needs test samples that were not seen"),
        (blobs(y=np.r_[0, np.ones(79, int)]), NONE, "svm", "each class has at least 2 training samples"),
        (
            blobs(y=np.r_[np.ones(48, int), np.arange(32) % 2]),
            NONE,
            "linear",
            "training samples of at least two classes",
        ),
        (blobs(y=np.eye(2, dtype=np.uint8)[np.arange(80) % 2]), NONE, "linear", "one label a sample"),
    ],
)
def test_data_that_cannot_be_split(data, seen, protocol, message):
    with pytest.raises(DataError, match=message):
        list(folds_of(PROTOCOLS[protocol], data, seen, 0))


# ---- nothing is chosen on test folds


@pytest.mark.parametrize("name", PROTOCOLS)
def test_labels_of_a_test_fold_do_not_touch_the_classifier(name):
    protocol = PROTOCOLS[name]
    features, labels = points()
    train, test = np.arange(0, 90), np.arange(90, 120)
    one = judge_fold(protocol, (features[train], labels[train]), (features[test], labels[test]))
    other = judge_fold(protocol, (features[train], labels[train]), (features[test], 1 - labels[test]))
    assert one.c == other.c
    assert one.accuracy > 0.9
    assert other.accuracy == pytest.approx(1 - one.accuracy)


def test_random_labels_are_not_learned():
    """With labels that mean nothing, a protocol that chooses anything on its test folds comes out above chance."""
    rng, found = np.random.default_rng(0), []
    for _ in range(4):
        features, labels = rng.normal(size=(100, 20)), np.arange(100) % 2
        data = from_arrays(np.zeros((100, 5, 5), np.uint8), labels, split=["train"] * 90 + ["test"] * 10)
        five = Protocol("five", "", "rbf", folds=5)
        for train, test in folds_of(five, data, NONE, 0):
            judged = judge_fold(five, (features[train], labels[train]), (features[test], labels[test]))
            found.append(judged.accuracy)
    assert abs(np.mean(found) - 0.5) < 0.1  # 400 guesses, not all independent


def hard(seed, count=150, classes=2, columns=6, scale=1.0, far=0.0, waves=0):
    """Clouds that overlap, some of them with wrong labels, or one cloud in waves: each problem has its own best C."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    features = rng.normal(size=(count, columns)) + rng.normal(size=(classes, columns))[labels]
    if waves:
        return features, (np.sin(waves * features).sum(axis=1) > 0).astype(int)
    return scale * features + far, np.where(rng.random(count) < 0.1, rng.integers(classes, size=count), labels)


def of_scikit_learn(train, labels, test):
    """The C and the predictions of scikit-learn's own search."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    inner = min(5, np.unique(labels, return_counts=True)[1].min())
    search = GridSearchCV(SVC(), {"C": list(GRID)}, cv=inner, scoring="accuracy").fit(train, labels)
    return search.best_params_["C"], search.predict(test)


PROBLEMS = [
    *({"seed": seed, "classes": 2 + seed % 3} for seed in range(9)),
    {"seed": 9, "columns": 2, "waves": 3},
    {"seed": 9, "columns": 3, "waves": 1},
    {"seed": 9, "scale": 1e4},
    {"seed": 10, "far": 1e5},
    {"seed": 11, "scale": 0.0},  # features of no variance
    {"seed": 12, "count": 60, "classes": 9},  # fewer than five of a class
]


def test_too_many_samples_for_all_distances_are_searched_as_ever(monkeypatch):
    features, labels = hard(seed=3)
    train, test = (features[:60], labels[:60]), (features[60:], labels[60:])
    one, of_one = judge_fold(GRAPHCL, train, test), fitted(GRAPHCL, *train).predict(test[0])
    monkeypatch.setattr(protocols, "MAX_KERNEL_SAMPLES", 59)
    monkeypatch.setattr(protocols, "squared_distances", None)
    assert judge_fold(GRAPHCL, train, test) == one
    assert np.array_equal(fitted(GRAPHCL, *train).predict(test[0]), of_one)


@pytest.mark.parametrize("asked", PROBLEMS, ids=lambda asked: f"{asked}")
@pytest.mark.parametrize("workers", [1, 3])
def test_an_rbf_svm_is_scikit_learn_s(asked, workers):
    features, labels = hard(**asked)
    part = len(labels) * 2 // 3
    train, test = (features[:part], labels[:part]), (features[part:], labels[part:])
    c, predicted = of_scikit_learn(*train, test[0])
    found = judge_fold(GRAPHCL, train, test, workers)
    assert found.c == c
    assert np.array_equal(fitted(GRAPHCL, *train, workers).predict(test[0]), predicted)
    assert found.accuracy == np.mean(predicted == test[1])


def test_the_problems_are_not_all_solved_by_one_penalty():
    chosen = set()
    for asked in PROBLEMS:
        features, labels = hard(**asked)
        chosen.add(of_scikit_learn(features, labels, features)[0])
    assert min(chosen) < 0.1
    assert max(chosen) > 10


def test_the_first_of_equal_penalties_is_chosen():
    features, labels = points(60)
    apart = features + 100 * labels[:, None]
    found = judge_fold(Protocol("equal", "", "rbf", (1e3, 1e1, 1e2)), (apart, labels), (apart, labels))
    assert (found.c, found.accuracy) == (1e3, 1)


def test_distances_are_those_of_every_pair():
    features = np.random.default_rng(0).normal(size=(7, 3)) + [0, 1e6, -1e3]
    expected = [[sum((a - b) ** 2) for b in features] for a in features]
    assert np.allclose(squared_distances(features), expected, rtol=1e-9, atol=1e-9)
    assert (squared_distances(np.repeat(features[:2], 5, axis=0)) >= 0).all()


def test_protocols_by_name():
    assert find_protocol("graphcl").task().options == {"layers": 3, "hidden": 32}
    assert (find_protocol("graphcl").task().epochs, find_protocol("tree-paper").task().epochs) == (20, 100)
    assert find_protocol("tree-paper").penalties == (1.0,)
    assert (find_protocol("graphcl").model, find_protocol("tree-paper").model) == ("gin", "resgcn")
    assert GRAPHCL.task(device="cpu").temperature == 0.2
    assert GRAPHCL.departures(GRAPHCL.task(device="cpu")) == []
    assert GRAPHCL.departures(GRAPHCL.task(epochs=3)) == ["epochs=3"]
    with pytest.raises(ArgumentError, match="protocol must be one of graphcl"):
        find_protocol("graphclr")


def test_the_paper_s_encoder():
    """Three residual layers of 128, on one feature of the graphs, the degree, and the degree up to 100 one-hot."""
    data = graphs(40)
    ready = PROTOCOLS["tree-paper"].task(device="cpu", steps=20, samples="all").prepare(data)
    state = ready.fit(find("graphcl"), 0)
    features = ready.features(state, np.arange(40)).numpy()
    assert features.shape == (40, 128)
    shapes = {name: list(tensor.shape) for name, tensor in ready.module(state).state_dict().items()}
    assert shapes["linear.weight"] == [128, 1 + 1 + 101]
    assert [name for name in shapes if name.startswith("layers.") and shapes[name] == [128, 128]] == [
        "layers.0.linear.weight", "layers.1.linear.weight", "layers.2.linear.weight"]  # fmt: skip
    known = (features[:30], data.labels.numpy()[:30])
    assert judge_fold(PROTOCOLS["tree-paper"], known, (features[30:], data.labels.numpy()[30:])).accuracy > 0.9


def test_whatever_changes_the_training_is_a_departure():
    paper = PROTOCOLS["tree-paper"]
    assert GRAPHCL.departures(GRAPHCL.task(steps=1)) == ["steps=1"]
    assert paper.departures(paper.task(views="one", preprocess=None)) == ["preprocess=None", "views=one"]
    assert paper.departures(paper.task(options={"hidden": 64})) == ["options={'layers': 3, 'hidden': 64}"]
    free = {"device": "cpu", "deterministic": True, "judge": "contrastive", "neighbours": 3, "metric": "loss"}
    assert (
        paper.departures(
            paper.task(**free, precision="bfloat16", samples="all", options={"weights": "a.safetensors"})
        )
        == []
    )
    assert PROTOCOLS["linear"].departures(paper.task()) == []


def test_options_of_the_model_are_added_to_the_protocol_s():
    assert PROTOCOLS["tree-paper"].task(options={"weights": "w"}).options == {
        "layers": 3, "hidden": 128, "weights": "w"}  # fmt: skip
    assert PROTOCOLS["tree-paper"].task(model="cnn", options={"width": 4}).options == {"width": 4}
    assert PROTOCOLS["linear"].task().options == {}


def test_bad_features_are_refused():
    with pytest.raises(ArgumentError, match="must be finite"):
        fitted(GRAPHCL, np.array([[np.nan], [1.0]]), np.array([0, 1]))
