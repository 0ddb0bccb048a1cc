"""A policy for each group of the data (hospitals, cameras, ...), one model, and learned weights."""

import torch

import augtree as at

digits = at.data.load("digits", train=300)
pictures, groups = digits.samples.clone(), ["upright", "mirrored"]
mirrored = torch.arange(len(pictures)) % 2 == 1
some = mirrored & (torch.arange(len(pictures)) % 4 == 1)
pictures[some] = pictures[some].flip(3)  # in the second group, half of the digits are mirrored
data = at.data.from_arrays(pictures, digits.labels, groups=[groups[int(i)] for i in mirrored])

task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=100, batch_size=64)
result = at.search_forest(data, task, alpha=25)  # target="worst": the weights serve the worst group
print(result.to_text())
print(result.verdict())
augmented = result.forest(pictures[:2], groups=["upright", "mirrored"])  # each picture by its group's tree
print(f"weights {dict(result.weights)}, augmented {list(augmented.shape)}")
