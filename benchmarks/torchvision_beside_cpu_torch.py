"""Makes torchvision's wheel importable beside a torch build without CUDA.

Its compiled operators cannot be loaded there, and its import stops at two that are not registered. Their schemas
alone are enough: nothing here calls them.
"""

import torch


def prepare() -> None:
    """Register the two schemas, unless torchvision has its own operators."""
    if torch.version.cuda is not None:
        return
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEEP.append(library)


_KEEP: list[torch.library.Library] = []
