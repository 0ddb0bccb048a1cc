"""Encoders judged by the protocols that papers use.

evaluate      train encoders without labels and judge their features
Evaluation    the result
"""

from augtree.evaluation.evaluate import evaluate
from augtree.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate"]
