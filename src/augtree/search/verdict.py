"""The verdict of a search, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from augtree.policies.drawing import tree_in_words
from augtree.search.factorial import Effect
from augtree.search.play import UNGROUPED
from augtree.search.trunk_events import gap_in_words, kept_in_words
from augtree.transforms.traits import EVERY_SAMPLE, GEOMETRY, TONES, TRAIT_WORDS

if TYPE_CHECKING:
    from augtree.search.result import TreeResult
CERTAIN = 2.0
"""Effects of this many standard errors are stated as certain."""
WHY = {
    "Flip": " (your classes have a left and a right)",
    "VerticalFlip": " (your classes have an up and a down)",
    "QuarterTurn": " (your classes have an upright side)",
    "PadCrop": " (what stands at the border counts, or where a thing stands)",
    TONES: " (your classes differ in brightness or colour)",
    GEOMETRY: " (your classes differ in angle, size or place)",
}
"""What a harmful factor says about the data."""

UNTESTED = "Nothing was tested."
FIRST_MIXTURE = (
    "The policy is the mixture that every search begins with:"
    " train longer, or give a larger budget, before you use it."
)


def verdict_of(result: TreeResult) -> str:
    """What a search found, in a few sentences."""
    return verdict_of_cooldowns(result) if result.mixture is not None else verdict_of_check(result)


def verdict_of_check(result: TreeResult) -> str:
    """The tree compared with the best free policy."""
    name = result.best_free
    if name is None:
        return "The tree was not compared with the free policies."
    other = result.free[name]
    side = "below" if result.beats_free else "above"
    difference = f"{abs(other.behind):.4f} ± {other.behind_se:.4f} {side} that of {name}, the best free policy"
    if other.behind == 0:
        return f"The search found nothing that is better than {name}, which is free. Use {name}."
    if abs(other.behind) <= 2 * other.behind_se:
        return f"The tree's validation loss is {difference}: within the noise of one training each (see compare)."
    end = "." if result.beats_free else f": the search did not help. Use {name}."
    return f"The tree's validation loss is {difference}{end}"


def verdict_of_cooldowns(result: TreeResult) -> str:
    """What left play and how sure that is, what won, and what the model reaches; a sentence each."""
    out = [removal_sentence(finding) for finding in result.out_of_play.values()]
    if not result.findings:
        out += [UNTESTED]
    elif not out:
        out = ["Nothing that was tested does harm: everything is in play."]
    out += borne(result)
    out += stays_in_play(result)
    if result.tree == result.mixture and not result.findings:
        out.append(FIRST_MIXTURE)
    elif result.tree == result.mixture and result.single == result.mixture:
        out.append("The policy is the mixture of what is in play.")
    elif result.tree == result.mixture:
        out.append(
            "No single policy was clearly better than the mixture of what is in play: the mixture is the answer."
        )
    else:
        out.append(f"{tree_in_words(result.tree)} was clearly better than the mixture of what is in play.")
    count = len(result.members)
    average = f"the average of {count} cool-downs" if count > 1 else "one cool-down"
    if result.metric in result.measures:
        value = f"{result.metric} {result.measures[result.metric]:.4f} on the validation data that chose it"
        unhelpful = "; averaging did not help" if count == 1 and len(result.cooled) > 1 else ""
        out.append(f"The finished model is {average}: {value}{unhelpful}.")
    return " ".join(out)


def removal_sentence(finding: Mapping[str, Any]) -> str:
    """Why something left play, in a sentence."""
    if "gap" in finding:
        gap = f"its loss on training samples is {gap_in_words(finding['gap'])} that on validation samples"
        return f"Half of the samples are left alone, since the model hardly overfits ({gap})."
    if "kept" in finding:
        return f"Out of play: {untaken(finding, UNGROUPED)}."
    harm = Effect(finding["harm"], finding["se"]).size
    name = TRAIT_WORDS.get(finding["factor"], finding["factor"])
    if finding["factor"] == EVERY_SAMPLE:
        return f"Augmenting every sample costs {harm} in validation loss: half of them are left alone."
    return f"Out of play: {name}, which cost {harm} in validation loss{WHY.get(finding['factor'], '')}."


def untaken(finding: Mapping[str, Any], group: str) -> str:
    """Why a flip or turn did not come into play in a group, in words."""
    factor, kept = finding["factor"], finding["kept"]
    name = TRAIT_WORDS.get(factor, factor)
    if not kept:
        return f"{name}, untested, since the model knew too little"
    effect = finding["groups"].get(group, finding)
    sure = effect["harm"] > CERTAIN * effect["se"]
    why = WHY.get(factor, "") if sure else " (in doubt; a wrong one costs more than a missing one)"
    if group not in kept:
        return f"{name}, as in all groups together{why}"
    share = kept_in_words(kept[group], finding.get("kept_se", {}).get(group, 0.0))
    return f"{name}: predictions for such samples keep {share} of their information{why}"


def borne(result: TreeResult) -> list[str]:
    """Which flips and turns the data bear."""
    last = {finding["factor"]: finding for finding in result.findings}
    found = [f for name, f in last.items() if f.get("kept") and name not in result.out_of_play]
    shares = {
        f["factor"]: kept_in_words(f["kept"][UNGROUPED], f.get("kept_se", {}).get(UNGROUPED, 0.0)) for f in found
    }
    words = [f"{TRAIT_WORDS[name]} ({share} of the information kept)" for name, share in shares.items()]
    return [f"Your data bear {', '.join(words)}."] if words else []


def stays_in_play(result: TreeResult) -> list[str]:
    """Which of the factors that stay clearly help, and which show neither harm nor help, by the last look at each."""
    last = {finding["factor"]: finding for finding in result.findings if not finding.keys() & {"kept", "gap"}}
    stays = [finding for name, finding in last.items() if name not in result.out_of_play]
    words: dict[bool, list[str]] = {True: [], False: []}
    for finding in stays:
        helps = finding["harm"] < -CERTAIN * finding["se"]
        gain = f" ({Effect(finding['harm'], finding['se']).size})" if helps else ""
        if helps or finding["factor"] != EVERY_SAMPLE:
            words[helps].append(TRAIT_WORDS.get(finding["factor"], finding["factor"]) + gain)
    out = [f"Clearly helps: {', '.join(words[True])}."] if words[True] else []
    return out + ([f"Stays, with no clear harm or help: {', '.join(words[False])}."] if words[False] else [])
