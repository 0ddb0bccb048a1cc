"""Search the views of contrastive learning, then judge the encoder by a linear classifier on its features."""

import augtree as at

data = at.data.load("digits", train=300, val=200)
task = at.tasks.Contrastive(model="cnn", options={"width": 8}, steps=20, batch_size=64)
result = at.search_tree(data, task, budget=2)
print(result.tree.to_text())
table = at.evaluate(data, task, {"searched": result.tree, "simclr": "simclr"}, protocol="linear", seeds=1)
print(table.to_text())
