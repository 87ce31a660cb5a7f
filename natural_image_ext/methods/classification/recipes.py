"""What is trained how: the methods by name, and the thesis' settings of each data set (appendix B)."""

from dataclasses import dataclass, replace
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from natural_image_ext.methods.averaged import AveragedMethod
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
class Recipe:
    """A method on a data set. ratio: unlabelled pictures for each labelled one; two_weak: both their views are weak.

    curriculum: confidence asked of a class grows with how well it is learned. uncertainty: the highest one accepted,
    in nats (a standard deviation for UPS); None for any.
    """

    title: str
    method: type[AveragedMethod]
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


METHODS = {
    "supervised": Recipe("supervised", Supervised),
    "mixmatch": Recipe("MixMatch", MixMatch, unlabelled_weight=100.0, two_weak=True, ratio=1),
    "uda": Recipe("UDA", UDA, confidence=0.8),
    "fixmatch": Recipe("FixMatch", FixMatch),
    "flexmatch": Recipe("FlexMatch", FixMatch, curriculum=True),
    "ups": Recipe("UPS", UPS, dropout=0.3, curriculum=True, uncertainty=0.05),
    "np_match": Recipe("NP-Match", NPMatch, head="np", curriculum=True, uncertainty=0.4),
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


def recipe(variant: str, dataset_name: str, divergence: str = "js") -> Recipe:
    """The recipe of a method by its name; data sets of one's own are trained as CIFAR-10 is.

    divergence only makes the title of NP-Match complete. Raises ConfigError for an unknown variant.
    """
    if variant not in METHODS:
        raise ConfigError(f"variant '{variant}' is unknown. Known: {', '.join(METHODS)}.")
    found = replace(METHODS[variant], **DATA_SETS.get(dataset_name, {}))
    if METHODS[variant].ratio == 1:
        found = replace(found, ratio=1)
    if dataset_name == "imagenet":
        found = replace(found, confidence=min(found.confidence, IMAGENET_CONFIDENCE))
        if found.method is NPMatch:
            found = replace(found, uncertainty=IMAGENET_UNCERTAINTY)
    if found.method is NPMatch:
        found = replace(found, title=f"{found.title}, {DIVERGENCES.get(divergence, divergence)}")
    return found


def build_method(
    recipe: Recipe,
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
    ema_decay: float = 0.999,
    warm_up: int = 0,
) -> AveragedMethod:
    """The recipe's method on `network`; what a method does not have is not looked at.

    num_unlabelled: pictures the curriculum keeps account of. warm_up: steps until MixMatch's unlabelled weight is full.
    """
    if recipe.method is Supervised:
        return Supervised(network, ema_decay)
    shared = {"unlabelled_weight": unlabelled_weight, "ema_decay": ema_decay}
    if recipe.method is MixMatch:
        return MixMatch(network, num_classes, warm_up=warm_up, **shared)
    own: dict[type[SemiSupervisedStep], dict[str, Any]] = {
        UPS: {"samples": samples},
        NPMatch: {"divergence": divergence, "divergence_weight": divergence_weight},
    }
    kept = num_unlabelled if flag(curriculum, "curriculum") else None
    selection = Selection(num_classes, confidence, uncertainty, kept, flag(align, "align"))
    return recipe.method(network, selection, **shared, **own.get(recipe.method, {}))  # type: ignore[arg-type]
