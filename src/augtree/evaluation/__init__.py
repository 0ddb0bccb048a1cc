"""Encoders judged by the protocols that papers use."""

from augtree.evaluation.evaluate import evaluate
from augtree.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate"]
