"""What "better" means: data, a model, an objective and a metric."""

from augtree.tasks.base import Task
from augtree.tasks.classification import Classification
from augtree.tasks.contrastive import Contrastive
from augtree.tasks.semisupervised import SemiSupervised

__all__ = ["TASKS", "Classification", "Contrastive", "SemiSupervised", "Task"]

TASKS: dict[str, type[Task]] = {task.kind: task for task in (Classification, Contrastive, SemiSupervised)}
"""By name, as files and the command line have them."""
