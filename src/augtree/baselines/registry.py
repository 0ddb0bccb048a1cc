"""The methods that `compare` knows by name, beside the free policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from augtree.baselines.base import Baseline
from augtree.baselines.cutmix import CutMix
from augtree.baselines.exhaustive import Exhaustive
from augtree.baselines.fast_autoaugment import FastAutoAugment
from augtree.baselines.graphaug import GraphAug
from augtree.baselines.greedy_sequence import GreedySequence
from augtree.baselines.group_dro import GroupDro
from augtree.baselines.infograph import InfoGraph
from augtree.baselines.joao import Joao
from augtree.baselines.lisa import Lisa
from augtree.baselines.mixup import Mixup
from augtree.baselines.paper import Paper
from augtree.baselines.randaugment_tuned import RandAugmentTuned
from augtree.baselines.random_tree import RandomTree
from augtree.baselines.scale import Scale
from augtree.baselines.targeted import Targeted
from augtree.baselines.uda import Uda
from augtree.baselines.untrained import Pretrained, RandomEncoder
from augtree.errors import RunError, shown
from augtree.policies.codec import Reader

METHODS: dict[str, type[Baseline]] = {
    method.name: method
    for method in (
        RandAugmentTuned,
        FastAutoAugment,
        Scale,
        Mixup,
        CutMix,
        Lisa,
        Targeted,
        GroupDro,
        GraphAug,
        Joao,
        InfoGraph,
        Uda,
        Pretrained,
        RandomEncoder,
        RandomTree,
        GreedySequence,
        Exhaustive,
        Paper,
    )
}
"""By name; nothing here imports an optional package."""


def restore(spec: Mapping[str, Any], reader: Reader) -> Baseline:
    """A method from its value in a file."""
    way = spec["way"]
    if way not in METHODS:
        raise RunError(f"{reader.path}: a method must be one of {', '.join(METHODS)}, got {shown(way)}")
    return METHODS[way].from_spec(spec, reader)
