"""The numbers of operations, which `fused` writes and `triton_kernels` reads, and of instructions of `programs`."""

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

TEST, CHOOSE, SKIP, CONSTANT = range(4)
SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, ROTATE = range(4, 9)
SOLARIZE_FROM, KEEP_BITS, FACTOR, CUT, PAIR_UP, PAD = range(9, 15)
"""The kinds of instructions that `programs` writes and `triton_draws` follows; from CONSTANT on, operations."""
REALS = 4
"""Numbers that an instruction comes with, 64 bits each."""
PATH = 6
"""Nodes that may lie between a batch's key and a draw's."""
FIELDS = 4 + PATH + WORDS
"""Whole numbers of an instruction: kind, next, other, counter, the nodes of the path, the words of an operation."""
