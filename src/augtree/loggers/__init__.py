"""Loggers: runs in TensorBoard, or in any other tracker of experiments.

Logger        the base class: what a run reports, as numbers, texts, pictures and options with plain names
TensorBoard   writes them for TensorBoard
"""

from augtree.loggers.base import Logger
from augtree.loggers.tensorboard import TensorBoard

__all__ = ["Logger", "TensorBoard"]
