"""The numbers of the operations that `fused` writes and `triton_kernels` reads."""

from __future__ import annotations

WORDS = 8
"""An operation is its number and up to seven parameters, 32 bits each."""
WARP, BOX, PAIR, SHARPNESS, COLOR = range(5)
HUE, SOBEL, NOISE, BLUR, STRETCH = range(8, 13)
"""Those of contrastive learning: the kernel is compiled without them for plans that need none."""
FIRST_CONTRASTIVE = HUE
SOLARIZE, POSTERIZE, BRIGHTNESS, CONTRAST = range(16, 20)
"""These look every value up in one table of 256."""
AUTO_CONTRAST, EQUALIZE = range(20, 22)
"""These in one for each channel."""
FIRST_TABLE = SOLARIZE
