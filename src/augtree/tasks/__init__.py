"""What "better" means: data, a model, an objective and a metric."""

from augtree.tasks.classification import Classification

__all__ = ["Classification"]
