"""A tree that somebody might write: things lean, wander and fade; they are never flipped."""

from augtree.policies import Tree
from augtree.transforms import spaces


def by_hand() -> Tree:
    """The tree that the tour shows."""
    plain = spaces.images(fill=0)
    return (
        Tree()
        .with_node(1, plain["Rotate", 0.6], p=0.8)
        .with_node(2, plain["ShearX", 0.8], p=0.6)
        .with_node(3, plain["TranslateY", 0.4])
        .with_node(4, plain["TranslateX", 0.4], p=0.5)
        .with_node(6, plain["Brightness", 0.6], p=0.7)
    )
