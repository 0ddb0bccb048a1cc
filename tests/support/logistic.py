"""A weighted problem that can be solved exactly."""

import numpy as np
import torch
from torch import nn

from augtree.forests.implicit_gradient import InnerLoss

DOUBLE = torch.float64


class Logistic:
    """Groups of labelled points, and a model of them that can be solved exactly."""

    def __init__(self, seed, groups=3, points=40, features=4, decay=0.1):
        rng = torch.Generator().manual_seed(seed)
        self.x = torch.randn(groups, points, features, generator=rng, dtype=DOUBLE)
        self.x += torch.randn(groups, 1, features, generator=rng, dtype=DOUBLE)
        truth = torch.randn(groups, features, 1, generator=rng, dtype=DOUBLE)
        self.y = (
            torch.rand(groups, points, generator=rng, dtype=DOUBLE) < torch.sigmoid(self.x @ truth)[..., 0]
        ).double()
        self.outer_x = torch.randn(points, features, generator=rng, dtype=DOUBLE)
        self.outer_y = (torch.rand(points, generator=rng, dtype=DOUBLE) < 0.5).double()
        self.decay = decay

    def losses(self, theta):
        logits = self.x @ theta
        return nn.functional.binary_cross_entropy_with_logits(logits, self.y, reduction="none").mean(1)

    def outer(self, theta):
        return nn.functional.binary_cross_entropy_with_logits(self.outer_x @ theta, self.outer_y)

    def solve(self, w):
        """Newton's method, by formulas of its own."""
        theta = torch.zeros(self.x.shape[-1], dtype=DOUBLE)
        for _ in range(50):
            p = torch.sigmoid(self.x @ theta)
            each = torch.einsum("g,gn,gnf->f", w / self.x.shape[1], p - self.y, self.x) + self.decay * theta
            theta = theta - torch.linalg.solve(self.hessian(theta, w), each)
        assert each.norm() < 1e-12
        return theta

    def hessian(self, theta, w):
        p = torch.sigmoid(self.x @ theta)
        curved = torch.einsum("g,gn,gnf,gnh->fh", w / self.x.shape[1], p * (1 - p), self.x, self.x)
        return curved + self.decay * torch.eye(len(theta), dtype=DOUBLE)


def inner_of(problem, w):
    theta = problem.solve(w).requires_grad_()
    return theta, InnerLoss(problem.losses(theta), w, [theta], decay=problem.decay)


def weights(seed, count=3):
    """Weights of some groups."""
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(count) * 3))
