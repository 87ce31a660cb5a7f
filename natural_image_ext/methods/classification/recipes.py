"""What is trained how: the methods by name, and the thesis' settings of each data set (appendix B)."""

from dataclasses import dataclass, replace
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from medssl.methods.facts import MethodFacts
from medssl.methods.parts import AveragedMethod
from natural_image_ext.methods.classification.fixmatch import FixMatch
from natural_image_ext.methods.classification.mixmatch import MixMatch
from natural_image_ext.methods.classification.np_match import DIVERGENCES, NPMatch
from natural_image_ext.methods.classification.selection import Selection
from natural_image_ext.methods.classification.step import SemiSupervisedStep
from natural_image_ext.methods.classification.supervised import Supervised
from natural_image_ext.methods.classification.uda import UDA
from natural_image_ext.methods.classification.ups import UPS
from natural_image_ext.networks.classifier import Classifier, HeadKind


@dataclass(frozen=True)
class PictureRecipe:
    """A method on a data set. place: that of its row in tables, as `MethodFacts` has it.

    ratio: unlabelled pictures for each labelled one; two_weak: both their views are weak.
    curriculum: confidence asked of a class grows with how well it is learned. uncertainty: the highest one accepted,
    in nats (a standard deviation for UPS); None for any. max_grad_norm: longer gradients are shortened to it.
    """

    title: str
    method: type[AveragedMethod]
    place: int
    head: HeadKind = "linear"
    dropout: float = 0.0
    curriculum: bool = False
    confidence: float = 0.95
    uncertainty: float | None = None
    unlabelled_weight: float = 1.0
    two_weak: bool = False
    backbone: str = "wrn_28_2"
    hidden: int | None = None
    batch_size: int = 64
    ratio: int = 7
    learning_rate: float = 0.03
    weight_decay: float = 5e-4
    max_grad_norm: float | None = None

    @property
    def facts(self) -> MethodFacts:
        """What tables and reports need to know of the method."""
        if self.method is Supervised:
            return MethodFacts(self.title, learns_from_unlabelled=False, place=self.place)
        views = ("weak",) if self.two_weak else ("weak", "strong")
        return MethodFacts(self.title, learns_from_unlabelled=True, place=self.place, views=views)


METHODS = {  # their places are those of the rows of table 4.1; NP-Match has one for each divergence
    "supervised": PictureRecipe("supervised", Supervised, 0),
    "mixmatch": PictureRecipe("MixMatch", MixMatch, 200, unlabelled_weight=100.0, two_weak=True, ratio=1),
    "uda": PictureRecipe("UDA", UDA, 201, confidence=0.8),
    "fixmatch": PictureRecipe("FixMatch", FixMatch, 204),
    "flexmatch": PictureRecipe("FlexMatch", FixMatch, 202, curriculum=True),
    "ups": PictureRecipe("UPS", UPS, 203, dropout=0.3, curriculum=True, uncertainty=0.05),
    "np_match": PictureRecipe("NP-Match", NPMatch, 205, head="np", curriculum=True, uncertainty=0.4, max_grad_norm=3.0),
}
DATA_SETS: dict[str, dict[str, Any]] = {  # where they differ from CIFAR-10
    "cifar100": {"backbone": "wrn_28_8", "weight_decay": 1e-3},
    "stl10": {"backbone": "wrn_37_2"},
    "imagenet": {
        "backbone": "resnet50",
        "hidden": 256,
        "batch_size": 256,
        "ratio": 1,
        "learning_rate": 0.05,
        "weight_decay": 1e-4,
    },
}
IMAGENET_CONFIDENCE, IMAGENET_UNCERTAINTY = 0.7, 1.2


def recipe(variant: str, dataset_name: str, divergence: str = "js") -> PictureRecipe:
    """The recipe of a method by its name; data sets of one's own are trained as CIFAR-10 is.

    divergence only makes the title of NP-Match complete. Raises ConfigError for an unknown variant.
    """
    if variant not in METHODS:
        raise ConfigError(f"variant '{variant}' is unknown. Known: {', '.join(METHODS)}.")
    usual = METHODS[variant]
    changes = dict(DATA_SETS.get(dataset_name, {}))
    if usual.ratio == 1:
        changes["ratio"] = 1
    if dataset_name == "imagenet":
        changes["confidence"] = min(usual.confidence, IMAGENET_CONFIDENCE)
        if usual.method is NPMatch:
            changes["uncertainty"] = IMAGENET_UNCERTAINTY
    chosen = replace(usual, **changes)
    return _with_divergence(chosen, divergence) if chosen.method is NPMatch else chosen


def _with_divergence(np_match: PictureRecipe, divergence: str) -> PictureRecipe:
    """NP-Match with its divergence in the title, and the place of that row; NPMatch refuses an unknown one."""
    if divergence not in DIVERGENCES:
        return replace(np_match, title=f"{np_match.title}, {divergence}")
    place = np_match.place + list(DIVERGENCES).index(divergence)
    return replace(np_match, title=f"{np_match.title}, {DIVERGENCES[divergence]}", place=place)


def build_method(
    recipe: PictureRecipe,
    network: Classifier,
    num_classes: int,
    num_unlabelled: int,
    confidence: float = 0.95,
    uncertainty: float | None = None,
    curriculum: bool | str = False,
    align: bool | str = False,
    unlabelled_weight: float = 1.0,
    samples: int = 10,
    divergence: str = "js",
    divergence_weight: float = 0.01,
    normalise: str = "accepted",
    ema_decay: float = 0.999,
    warm_up: int = 0,
) -> AveragedMethod:
    """The recipe's method on `network`; what a method does not have is not looked at.

    num_unlabelled: pictures the curriculum keeps account of. warm_up: steps until MixMatch's unlabelled weight is full.
    """
    if recipe.method is Supervised:
        return Supervised(network, ema_decay=ema_decay)
    shared = {"unlabelled_weight": unlabelled_weight, "ema_decay": ema_decay}
    if recipe.method is MixMatch:
        return MixMatch(network, num_classes, warm_up=warm_up, **shared)
    own: dict[type[SemiSupervisedStep], dict[str, Any]] = {
        UPS: {"samples": samples},
        NPMatch: {"divergence": divergence, "divergence_weight": divergence_weight, "normalise": normalise},
    }
    kept = num_unlabelled if flag(curriculum, "curriculum") else None
    selection = Selection(num_classes, confidence, uncertainty, kept, flag(align, "align"))
    return recipe.method(network, selection, **shared, **own.get(recipe.method, {}))  # type: ignore[arg-type]
