"""Few labels: train on unlabelled pictures too, with the policy as the strong view of consistency training (UDA)."""

import augtree as at

data = at.data.load("digits", labels=30)  # keeps 30 labels; the other training pictures are unlabelled
options = {"model": "cnn", "options": {"width": 8}, "steps": 150, "batch_size": 20}
supervised = at.train(data, at.tasks.Classification(**options), "randaugment")
task = at.tasks.SemiSupervised(**options, ratio=5, confidence=0.6)  # at.search_tree(data, task) finds a policy
consistent = at.train(data, task, "randaugment")
for name, found in (("labels alone", supervised), ("with unlabelled pictures", consistent)):
    print(f"{name}: test accuracy {found.metrics['test']['accuracy']:.3f}")
