"""Exports: policies as code, and finished models as files, that work without augtree.

export        a policy as a module for torch alone, for torchvision, or for Albumentations
export_model  the finished model of a run: safetensors, torch.export or ONNX
"""

from augtree.exports.models import export_model
from augtree.exports.policies import export

__all__ = ["export", "export_model"]
