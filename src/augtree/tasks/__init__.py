"""What "better" means: a model, an objective and a metric, as a value that a search or a training takes.

>>> from augtree import tasks
>>> sorted(tasks.TASKS)
['classification', 'contrastive', 'semisupervised']
"""

from augtree.tasks.arguments import TASKS
from augtree.tasks.base import Task
from augtree.tasks.classification import Classification
from augtree.tasks.contrastive import Contrastive
from augtree.tasks.semisupervised import SemiSupervised

__all__ = ["TASKS", "Classification", "Contrastive", "SemiSupervised", "Task"]
