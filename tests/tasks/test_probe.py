import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from augtree.tasks.probe import Probe


def test_a_probe_knows_only_what_it_has_seen():
    features = np.array([[0.0], [1.0], [2.0], [3.0]])
    probe = Probe.fitted(features, np.array([0, 0, 2, 2]), 3)
    assert probe.logits(features).argmax(1).tolist() == [0, 0, 2, 2]
    assert (probe.logits(features)[:, 1] == -1000).all()
    assert np.isfinite(probe.logits(1e6 * features)).all()  # however sure it is
    one = Probe.fitted(features, np.array([1, 1, 1, 1]), 3)
    assert one.logits(features).argmax(1).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_logistic_regression_on_standardised_features(classes):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % classes
    features = rng.normal(size=(60, 4)) * [1, 10, 0.1, 0] + labels[:, None] * [1, 5, 0, 0] + 7  # the last is constant
    probe = Probe.fitted(features[:40], labels[:40], classes)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(features[:40], labels[:40])
    logits = probe.logits(features[40:])
    odds = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert odds == pytest.approx(model.predict_proba(features[40:]), abs=1e-6)


def test_several_labels_have_a_classifier_each():
    features = np.array([[0.0, 5.0], [1.0, 4.0], [2.0, 5.0], [3.0, 4.0]])
    labels = np.array([[0, 1, 1], [0, 0, 1], [1, 1, 1], [1, 0, 1]], np.uint8)
    logits = Probe.fitted(features, labels, 3).logits(features)
    assert ((logits > 0) == labels).all()
    for column in (0, 1):
        alone = Probe.fitted(features, labels[:, column], 2).logits(features)
        assert logits[:, column] == pytest.approx(alone[:, 1] - alone[:, 0])
    assert (logits[:, 2] == 1000).all()
