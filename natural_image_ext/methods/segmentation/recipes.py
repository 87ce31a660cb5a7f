"""The segmentation methods by name, and their settings in the literature and the thesis (appendix C)."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from medssl.core.errors import ConfigError
from medssl.methods.facts import MethodFacts
from medssl.methods.parts import AveragedMethod
from natural_image_ext.methods.segmentation.augseg import AugSeg
from natural_image_ext.methods.segmentation.cps import CPS
from natural_image_ext.methods.segmentation.cutmix import AdaptiveCutMix, BetaCutMix, CutMix
from natural_image_ext.methods.segmentation.mean_teacher import MeanTeacher
from natural_image_ext.methods.segmentation.ps_mt import PSMT
from natural_image_ext.methods.segmentation.supervised import SupervisedScenes
from natural_image_ext.methods.segmentation.u2pl import U2PL
from natural_image_ext.networks.encoders import IMAGENET
from natural_image_ext.networks.segmentation import SegmentationNetwork, build_segmentation

HEADS = {"plain": "", "dropout": " w/ MC dropout", "np": " w/ NP-SemiSeg"}


@dataclass(frozen=True)
class SceneRecipe:
    """A framework on a data set. strong: the kind of strong view it learns from. options: of its method.

    place: that of its row in tables, as `MethodFacts` has it; its rows with other heads come right after it.
    head_factor: how many times faster all but the encoder learns. warm_up_epochs: the first ones, of labels alone.
    evaluation, crop_to: how it is evaluated, `scene_inferer` and `SceneEvaluation`. encoder_weights: those the encoder
    begins with.
    """

    title: str
    method: type[AveragedMethod]
    place: int
    strong: str = "colour"
    unlabelled_weight: float = 1.0
    ema_decay: float = 0.99
    options: dict[str, Any] = field(default_factory=dict)
    crop: int = 480
    batch_size: int = 12
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    epochs: int = 80
    head_factor: float = 10.0
    warm_up_epochs: int = 0
    evaluation: str = "whole"
    crop_to: int | None = None
    encoder_weights: str | None = IMAGENET

    @property
    def facts(self) -> MethodFacts:
        """What tables and reports need to know of the method."""
        if self.method is SupervisedScenes:
            return MethodFacts(self.title, learns_from_unlabelled=False, place=self.place)
        return MethodFacts(self.title, learns_from_unlabelled=True, place=self.place, views=("weak", "strong"))


FRAMEWORKS = {
    "supervised": SceneRecipe("supervised", SupervisedScenes, 0),
    "mean_teacher": SceneRecipe("MT", MeanTeacher, 300, unlabelled_weight=100.0),
    "ps_mt": SceneRecipe("PS-MT", PSMT, 303, unlabelled_weight=1.5, ema_decay=0.996, options={"mixer": BetaCutMix()}),
    "u2pl": SceneRecipe("U2PL", U2PL, 306, options={"mixer": CutMix()}, warm_up_epochs=1),
    "augseg": SceneRecipe("AugSeg", AugSeg, 309, "augseg", ema_decay=0.999, options={"mixer": AdaptiveCutMix()}),
    "cps": SceneRecipe("CPS", CPS, 312, ema_decay=0.0),
}
DATA_SETS: dict[str, dict[str, Any]] = {
    "voc": {"crop_to": 480},
    "voc_blender": {"crop_to": 480},
    "cityscapes": {
        "crop": 580,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "weight_decay": 5e-4,
        "epochs": 200,
        "head_factor": 1.0,
        "evaluation": "sliding",
    },
}
# what a framework has of its own on a data set; PS-MT's authors take 0.06 on classic VOC with 92 labels
OWN: dict[tuple[str, str], dict[str, Any]] = {
    ("ps_mt", "voc"): {"unlabelled_weight": 0.6},
    ("ps_mt", "cityscapes"): {"unlabelled_weight": 3.0, "options": {"mixer": CutMix(boxes=3)}},
    ("cps", "cityscapes"): {"unlabelled_weight": 6.0},
    ("augseg", "cityscapes"): {
        "ema_decay": 0.996,
        "epochs": 240,
        "options": {"mixer": AdaptiveCutMix(), "confidence": 0.0},
    },
}


def seg_recipe(variant: str, dataset_name: str, head: str = "np") -> SceneRecipe:
    """The recipe of a framework by its name; data sets of one's own are trained as PASCAL VOC with SBD is.

    head only makes the title complete, and the place in tables. Raises ConfigError for unknown names.
    """
    if variant not in FRAMEWORKS:
        raise ConfigError(f"variant '{variant}' is unknown. Known: {', '.join(FRAMEWORKS)}.")
    if head not in HEADS:
        raise ConfigError(f"head '{head}' is unknown. Known: {', '.join(HEADS)}.")
    changes = {**DATA_SETS.get(dataset_name, {}), **OWN.get((variant, dataset_name), {})}
    chosen = replace(FRAMEWORKS[variant], **changes)
    is_supervised = chosen.method is SupervisedScenes
    place = chosen.place if is_supervised else chosen.place + list(HEADS).index(head)
    return replace(chosen, title=chosen.title + HEADS[head], place=place)


def build_seg_method(
    recipe: SceneRecipe,
    network: SegmentationNetwork,
    num_classes: int,
    steps_per_epoch: int,
    total_steps: int,
    unlabelled_weight: float = 1.0,
    kl_weight: float = 0.005,
    ema_decay: float = 0.99,
    warm_up: int = 0,
    dice_weight: float = 0.0,
    second: Callable[[], SegmentationNetwork] | None = None,
) -> AveragedMethod:
    """The recipe's method on `network`; second builds the other network of CPS, by default one like the first."""
    shared: dict[str, Any] = {
        "unlabelled_weight": unlabelled_weight,
        "kl_weight": kl_weight,
        "ema_decay": ema_decay,
        "warm_up": warm_up,
        "dice_weight": dice_weight,
    }
    if recipe.method is CPS:
        return CPS(network, second or partial(_like, network), **shared)
    own: dict[type[AveragedMethod], dict[str, Any]] = {
        PSMT: {"steps_per_epoch": steps_per_epoch},
        U2PL: {"num_classes": num_classes, "total_steps": total_steps},
    }
    options = {**shared, **recipe.options, **own.get(recipe.method, {})}
    return recipe.method(network, **options)


def _like(network: SegmentationNetwork) -> SegmentationNetwork:
    """Another network with a random beginning of its own; only a pre-trained encoder is the same."""
    other = build_segmentation(**network.arguments)
    if network.is_pretrained:
        other.encoder.load_state_dict(network.encoder.state_dict())
    return other
