"""GBDL and what the thesis and we compare it with: each variant is what it changes, under one name.

A bundle's `variant` key names one, or several joined with "+" ("bounded_v+hard_labels"). What a variant changes holds
against other keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from torch import nn

from medssl.core.errors import ConfigError
from medssl.methods.facts import PLACE_OF_OTHERS, MethodFacts
from medssl.methods.gbdl import LatentLearning, PosteriorLearning
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.methods.self_training import TeacherLearning, UNetTeacher
from medssl.networks.lrl import LRL
from medssl.networks.unet import MCDropoutUNet3D

Changes = dict[str, Any]
Built = TypeVar("Built")


@dataclass(frozen=True)
class Variant:
    """The row's title in tables, and the arguments of LRL, of stage 1 and of stage 2 that differ from GBDL's.

    with_lrl False is self-training: a 3D-UNet trained on the labelled patches takes LRL's place.
    """

    title: str
    place: int = PLACE_OF_OTHERS
    lrl: Changes = field(default_factory=dict)
    first_stage: Changes = field(default_factory=dict)
    second_stage: Changes = field(default_factory=dict)
    with_lrl: bool = True

    def joined(self, other: "Variant") -> "Variant":
        """Both changes at once; ConfigError where they contradict each other or one would do nothing."""
        parts = []
        for ours, theirs in zip(self._changes, other._changes, strict=True):
            clash = sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key])
            if clash:
                raise ConfigError(f"'{self.title}' and '{other.title}' both change {clash[0]}. Choose one of them.")
            parts.append(ours | theirs)
        with_lrl = self.with_lrl and other.with_lrl
        if not with_lrl and (parts[0] or parts[1]):
            raise ConfigError("self-training has no LRL: only options of the second stage can be joined with it.")
        title = f"{self.title}, {other.title.removeprefix('GBDL, ')}"
        return Variant(title, PLACE_OF_OTHERS, parts[0], parts[1], parts[2], with_lrl)

    @property
    def facts(self) -> MethodFacts:
        """What a run of this variant stores of its method."""
        return replace(PosteriorLearning.facts, title=self.title, place=self.place)

    @property
    def _changes(self) -> tuple[Changes, Changes, Changes]:
        return self.lrl, self.first_stage, self.second_stage


WITHOUT_Z: Changes = {"with_z": False, "with_reconstruction": False}

VARIANTS: dict[str, Variant] = {
    "gbdl": Variant("GBDL", 107),
    # thesis, table 3.1
    "volume": Variant("Volume-based LRL", 102, lrl={"latent": "volume"}),
    "ic": Variant("IC-LRL", 103, lrl={"latent": "independent"}),
    # thesis, table 3.2
    "no_mse": Variant("GBDL w/o L_MSE", 104, lrl={"with_reconstruction": False}),
    "no_kl": Variant("GBDL w/o L_KL", 105, first_stage={"kl_weight": 0.0}),
    "shared_encoder": Variant("GBDL w/ shared encoders", 106, lrl={"shared_encoder": True}),
    # thesis, section 3.4: told in words, without numbers
    "shared_decoder": Variant("GBDL w/ shared decoders", 106, lrl={"shared_decoder": True}),
    # controls: what remains without the generative part
    "self_training": Variant("self-training", 100, with_lrl=False),
    "no_z": Variant("GBDL without Z", 101, lrl=WITHOUT_Z, first_stage={"kl_weight": 0.0}),
    # our attempts to make the generative part count
    "bounded_v": Variant("GBDL, bounded v", lrl={"v_bound": 1.0}),
    "sum_kl": Variant("GBDL, sum of slice KLs", first_stage={"kl": "sum"}),
    "no_label_skips": Variant("GBDL, label decoder without skips", lrl={"label_skips": False}),
    "z_only": Variant("GBDL, labels from Z alone", lrl={"label_skips": False, "with_label_features": False}),
    "no_image_skips": Variant("GBDL, reconstruction without skips", lrl={"image_skips": False}),
    "coarse_image": Variant(
        "GBDL, coarse reconstruction without skips", lrl={"image_skips": False, "reconstruction_level": 1}
    ),
    "entropy_weighted": Variant("GBDL, entropy-weighted labels", second_stage={"weigh_by_entropy": True}),
    "hard_labels": Variant("GBDL, hard labels", second_stage={"pseudo": "hard"}),
    # the authors' released network
    "released": Variant(
        "GBDL, released network",
        lrl={"covariance": "released", "c": 10.0, "shared_head": True, "label_bottleneck": True, "last_kernel": 1},
    ),
}


def known_facts() -> list[MethodFacts]:
    """The facts of every variant, for runs that were made before they stored them."""
    return [variant.facts for variant in VARIANTS.values()]


def gbdl_variant(name: str) -> Variant:
    """The variant of this name; ConfigError with the known names otherwise."""
    parts = str(name).split("+")
    unknown = [part for part in parts if part not in VARIANTS]
    if unknown:
        raise ConfigError(f"variant '{unknown[0]}' is unknown. Known, also joined with '+': {', '.join(VARIANTS)}.")
    variant = VARIANTS[parts[0]]
    for part in parts[1:]:
        variant = variant.joined(VARIANTS[part])
    return variant


def build_teacher(variant: Variant, posterior: nn.Module, **lrl: Any) -> LRL | UNetTeacher:
    """The network of stage 1: LRL with the variant's changes or, for self-training, a second one like `posterior`."""
    if not variant.with_lrl:
        if not isinstance(posterior, MCDropoutUNet3D):
            raise ConfigError(
                f"variant '{variant.title}': its teacher is a MCDropoutUNet3D, but network_def is a "
                f"{type(posterior).__name__}. Keep the network_def of train.json."
            )
        return UNetTeacher(**posterior.arguments)  # type: ignore[arg-type]
    return _checked(LRL, **(lrl | variant.lrl))


def build_first_stage(
    variant: Variant, network: LRL | UNetTeacher, segmentation_loss: nn.Module, **weights: Any
) -> LatentLearning | TeacherLearning:
    """The losses of stage 1."""
    if isinstance(network, UNetTeacher):
        return TeacherLearning(network, segmentation_loss)
    return _checked(LatentLearning, network, segmentation_loss, **(weights | variant.first_stage))


def build_second_stage(
    variant: Variant, network: nn.Module, pseudo_labels: PseudoLabels, segmentation_loss: nn.Module, **options: Any
) -> PosteriorLearning:
    """The losses of stage 2."""
    return _checked(PosteriorLearning, network, pseudo_labels, segmentation_loss, **(options | variant.second_stage))


def _checked(build: Callable[..., Built], *args: Any, **kwargs: Any) -> Built:
    """What `build` makes; a combination that it refuses is a ConfigError."""
    try:
        return build(*args, **kwargs)
    except ValueError as error:
        raise ConfigError(f"this variant cannot be built: {error}.") from error
