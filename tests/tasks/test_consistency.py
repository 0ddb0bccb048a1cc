import math

import pytest
import torch

from augtree.tasks.consistency import annealed, certainty, consistency, log_probabilities, signal_threshold


def logits_of(*rows):
    """Logits whose softmax is these rows."""
    return torch.tensor(rows, dtype=torch.float64).log()


def odds_of(*rows):
    """Logits whose sigmoid is these rows."""
    return torch.logit(torch.tensor(rows, dtype=torch.float64))


def kl(target, guess):
    return sum(p * math.log(p / q) for p, q in zip(target, guess, strict=True) if p > 0)


# ---- one label a sample


def test_sharpening_on_a_worked_example():
    """At temperature 1/2 chances are squared: 0.6, 0.3, 0.1 become 36, 9 and 1 of 46."""
    found = log_probabilities(logits_of((0.6, 0.3, 0.1)) / 0.5, multilabel=False).exp()
    assert found[0].tolist() == pytest.approx([36 / 46, 9 / 46, 1 / 46])


def test_views_that_agree_cost_nothing_without_sharpening():
    same = logits_of((0.6, 0.3, 0.1), (0.2, 0.2, 0.6))
    found = consistency(same, same + 3.0, sharpen=1.0, confidence=0.0, multilabel=False)  # any constant: same chances
    assert float(found) == pytest.approx(0, abs=1e-12)


def test_sharpened_divergence_on_a_worked_example():
    plain, strong = logits_of((0.6, 0.3, 0.1)), logits_of((0.5, 0.25, 0.25))
    found = consistency(plain, strong, sharpen=0.5, confidence=0.0, multilabel=False)
    expected = (36 * math.log(36 / 23) + 9 * math.log(9 / 11.5) + math.log(1 / 11.5)) / 46
    assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize(("confidence", "taught"), [(0.0, (0, 1, 2)), (0.55, (0, 2)), (0.7, (2,)), (0.95, ())])
def test_the_mask_leaves_out_what_is_not_confident_and_counts_it(confidence, taught):
    chances = [(0.6, 0.3, 0.1), (0.5, 0.25, 0.25), (0.9, 0.05, 0.05)]
    guesses = [(0.4, 0.4, 0.2), (0.1, 0.8, 0.1), (0.2, 0.2, 0.6)]
    found = consistency(
        logits_of(*chances), logits_of(*guesses), sharpen=1.0, confidence=confidence, multilabel=False
    )
    assert float(found) == pytest.approx(sum(kl(chances[i], guesses[i]) for i in taught) / 3)


def test_what_is_just_at_the_threshold_is_left_out():
    plain = torch.zeros(1, 2)  # chances of exactly 1/2
    strong = torch.tensor([[1.0, 0.0]])
    below, at = (consistency(plain, strong, sharpen=1.0, confidence=c, multilabel=False) for c in (0.4999, 0.5))
    assert float(below) > 0.1
    assert float(at) == 0


def test_confidence_is_that_before_sharpening():
    plain, strong = logits_of((0.6, 0.4)), logits_of((0.5, 0.5))  # sharpened at 0.1, 0.6 is 0.98
    assert float(consistency(plain, strong, sharpen=0.1, confidence=0.7, multilabel=False)) == 0


@pytest.mark.parametrize("multilabel", [False, True])
def test_against_a_direct_loop(multilabel):
    draw = torch.Generator().manual_seed(0)
    plain, strong = (2 * torch.randn(20, 4, generator=draw, dtype=torch.float64) for _ in range(2))
    total, parts = 0.0, 0
    for one, other in zip(plain.tolist(), strong.tolist(), strict=True):
        pairs = [([a, -a], [b, -b]) for a, b in zip(one, other, strict=True)] if multilabel else [(one, other)]
        for a, b in pairs:
            half = 0.5 if multilabel else 1.0  # sigmoid(a) is the softmax of a/2 and -a/2
            p, q, sharp = (softmax([x * half / t for x in row]) for row, t in ((a, 1), (b, 1), (a, 0.4)))
            total += kl(sharp, q) if max(p) > 0.7 else 0
            parts += 1
    found = consistency(plain, strong, sharpen=0.4, confidence=0.7, multilabel=multilabel)
    assert float(found) == pytest.approx(total / parts)
    assert total > 0


def softmax(row):
    powers = [math.exp(x) for x in row]
    return [x / sum(powers) for x in powers]


@pytest.mark.parametrize("multilabel", [False, True])
def test_only_the_strong_view_takes_a_gradient(multilabel):
    plain = torch.tensor([[2.0, -2.0], [0.1, 0.0]], requires_grad=True)
    strong = torch.tensor([[0.5, 1.0], [0.3, -0.5]], requires_grad=True)
    consistency(plain, strong, sharpen=0.5, confidence=0.8, multilabel=multilabel).backward()
    assert plain.grad is None
    assert strong.grad[0].abs().min() > 0
    assert strong.grad[1].abs().max() == 0  # masked


def test_the_gradient_is_guess_minus_target():
    strong = torch.tensor([[0.2, -0.3, 0.9]], dtype=torch.float64, requires_grad=True)
    consistency(logits_of((0.7, 0.2, 0.1)), strong, sharpen=1.0, confidence=0.0, multilabel=False).backward()
    expected = torch.softmax(strong.detach(), 1) - torch.tensor([[0.7, 0.2, 0.1]])
    assert torch.allclose(strong.grad, expected, atol=1e-9)


def test_far_logits_stay_finite():
    far = torch.tensor([[500.0, -500.0, 0.0]])
    for multilabel in (False, True):
        strong = (-far).requires_grad_()
        found = consistency(far, strong, sharpen=0.1, confidence=0.8, multilabel=multilabel)
        found.backward()
        assert torch.isfinite(found)
        assert torch.isfinite(strong.grad).all()


# ---- several labels


def test_labels_are_confident_either_way():
    found = certainty(odds_of((0.9, 0.1, 0.6)), multilabel=True)
    assert found[0].tolist() == pytest.approx([0.9, 0.9, 0.6])


def test_each_label_is_masked_by_itself():
    plain, strong = odds_of((0.9, 0.1, 0.6)), odds_of((0.5, 0.5, 0.1))
    found = consistency(plain, strong, sharpen=1.0, confidence=0.8, multilabel=True)
    assert float(found) == pytest.approx(2 * kl((0.9, 0.1), (0.5, 0.5)) / 3)


def test_labels_are_sharpened_one_by_one():
    """At temperature 1/2, yes and no are squared: 0.8 becomes 64 of 68."""
    plain, strong = odds_of((0.8,)), odds_of((0.5,))
    found = consistency(plain, strong, sharpen=0.5, confidence=0.0, multilabel=True)
    assert float(found) == pytest.approx(kl((64 / 68, 4 / 68), (0.5, 0.5)))


# ---- the training signal


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("none", [1.0, 1.0, 1.0]),
        ("linear", [0.25, 0.625, 1.0]),
        ("log", [0.25, 0.25 + 0.75 * (1 - math.exp(-2.5)), 1 - 0.75 * math.exp(-5)]),
        ("exp", [0.25 + 0.75 * math.exp(-5), 0.25 + 0.75 * math.exp(-2.5), 1.0]),
    ],
)
def test_thresholds_of_four_classes_at_the_beginning_the_middle_and_the_end(schedule, expected):
    assert [signal_threshold(schedule, step, 10, 4) for step in (0, 5, 10)] == pytest.approx(expected)


@pytest.mark.parametrize("schedule", ["linear", "log", "exp"])
def test_thresholds_only_rise_and_stay_below_one(schedule):
    found = [signal_threshold(schedule, step, 50, 10) for step in range(80)]
    assert found == sorted(found)
    assert 0.1 <= found[0] < found[-1] <= 1
    assert found[50:] == [found[50]] * 30  # after the end


def test_what_is_known_too_well_is_left_out():
    losses, chances = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0.9, 0.6, 0.3])
    found = [float(annealed(losses, chances, torch.tensor(t))) for t in (1.0, 0.7, 0.6, 0.5, 0.2)]
    assert found == [3.0, 4.0, 4.0, 6.0, 0.0]
