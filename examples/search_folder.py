"""Search a policy for your own pictures, in a folder with one subfolder for each class.

    python examples/search_folder.py [FOLDER]

Without a folder, some digits are written into one. For results worth having, leave `steps` out.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

import augtree as at


def write_digits(folder: Path) -> None:
    """Write 300 digits as PNG files, a subfolder a class."""
    digits = at.data.load("digits")
    for i in range(300):
        place = folder / digits.classes[int(digits.labels[i])]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(digits.samples[i, 0].numpy()).save(place / f"{i}.png")


with TemporaryDirectory() as temporary:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
    if len(sys.argv) == 1:
        write_digits(folder)
    data = at.data.load(folder)
    task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=60, batch_size=32)
    result = at.search_tree(data, task, seed=0)
    result.tree.save(Path(temporary) / "tree.json")  # at.load reads it; so does `augtree apply`

print(result.verdict())
print(f"accuracy on validation data {result.measures['accuracy']:.3f}, cost: {result.cost}")
