"""Training on scenes: a framework's choices, its network, its trainer, and what comes after the last step."""

from functools import cached_property
from typing import Any

import torch
from monai.engines import SupervisedEvaluator

from medssl.bundle.keys import given_by_name, given_options
from medssl.bundle.networks import NetworkOptions, goes_on
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session, SessionOptions
from medssl.bundle.stage import session_trainer
from medssl.bundle.story import tell_end
from medssl.core.options import names_of
from medssl.data.image_batches import SemiSupervisedImages, make_image_loader
from medssl.engine.trainer import MethodTrainer
from medssl.methods.facts import MethodFacts
from medssl.methods.parts import AveragedMethod
from medssl.report.finish import finish_run
from natural_image_ext.bundle.begin import SCENE_PARTS, NaturalTraining, commands_after_images
from natural_image_ext.bundle.options import SceneOptions
from natural_image_ext.bundle.scene_data import SceneData
from natural_image_ext.data.scene_views import SceneViews, SemiSupervisedScenes
from natural_image_ext.inference.export import export_segmentation
from natural_image_ext.inference.scene_evaluation import SceneEvaluation
from natural_image_ext.inference.scene_predictor import ScenePredictor
from natural_image_ext.inference.scene_sampling import scene_inferer
from natural_image_ext.methods.segmentation.recipes import SceneRecipe, build_seg_method, seg_recipe
from natural_image_ext.networks.segmentation import SegmentationNetwork, build_segmentation
from natural_image_ext.optimisation import encoder_and_rest
from natural_image_ext.validation import scene_validator


class SceneChoices:
    """The options of a training on scenes or slices; what is not given is the recipe's."""

    def __init__(self, data: SceneData | ScanData, **listed: Any) -> None:
        self.options = given_options(SceneOptions, listed)
        self.given_as_none = set(given_by_name(set(names_of(SceneOptions)) - set(listed)))
        self.data = data
        self.recipe: SceneRecipe = seg_recipe(self.options.variant, data.options.dataset_name, self.options.head)
        self.epochs = self.options.max_epochs or self.recipe.epochs

    @property
    def facts(self) -> MethodFacts:
        return self.recipe.facts

    def of_recipe(self, name: str) -> Any:
        """An option, or the recipe's value of the same name where it is not given; None may be given, too."""
        given = getattr(self.options, name)
        is_given = given is not None or name in self.given_as_none
        return given if is_given else getattr(self.recipe, name)

    @property
    def steps_per_epoch(self) -> int:
        return self.options.steps_per_epoch or self.data.steps_per_epoch(self.of_recipe("batch_size"))

    @property
    def total_steps(self) -> int:
        return self.options.total_steps or self.epochs * self.steps_per_epoch

    @property
    def warm_up(self) -> int:
        given = self.options.warm_up
        return self.recipe.warm_up_epochs * self.steps_per_epoch if given is None else given


def scene_network(data: SceneData | ScanData, choices: SceneChoices) -> SegmentationNetwork:
    """The encoder with decoder and head."""
    asked = choices.options
    return build_segmentation(
        encoder=asked.encoder,
        num_classes=data.num_classes,
        head=asked.head,  # type: ignore[arg-type]
        dropout=asked.dropout,
        channels=asked.channels,
        detail=asked.detail,
        samples=asked.samples,
        bank_size=asked.bank_size,
        aggregator=asked.aggregator,  # type: ignore[arg-type]
        encoder_weights=first_encoder_weights(choices),
    )


def first_encoder_weights(choices: SceneChoices) -> str | None:
    """What the encoder begins with: as the user says, else the recipe's, but nothing where all weights are replaced.

    That is so of a run that goes on, and of one that starts from another. The text `null` is the command line's None.
    """
    given = choices.options.encoder_weights
    if given is not None:
        return None if given in ("null", "none") else given
    network, session = given_options(NetworkOptions, {}), given_options(SessionOptions, {})
    is_replaced = goes_on(session) or network.start_from is not None
    return None if is_replaced else choices.of_recipe("encoder_weights")


class SegmentationTraining(NaturalTraining):
    """The one stage of a training on scenes or slices; they differ in their data and in what comes after it."""

    bundle = "np_semiseg"
    dataset: SemiSupervisedImages
    validator: SupervisedEvaluator
    session: Session

    def __init__(self, network: SegmentationNetwork, choices: SceneChoices, **shared: Any) -> None:
        super().__init__(network, **shared)
        self.choices = choices

    @property
    def schedule(self) -> SceneChoices:
        return self.choices

    @property
    def variant(self) -> str:
        """What the run's folder is named after besides the data."""
        return f"{self.choices.options.variant}_{self.choices.options.head}"

    def images_a_step(self) -> tuple[int, int]:
        size = self.choices.of_recipe("batch_size")
        return size, size

    @cached_property
    def method(self) -> AveragedMethod:
        choices, asked = self.choices, self.choices.options
        return build_seg_method(
            choices.recipe,
            self.network,
            num_classes=choices.data.num_classes,
            steps_per_epoch=choices.steps_per_epoch,
            total_steps=choices.total_steps,
            unlabelled_weight=choices.of_recipe("unlabelled_weight"),
            kl_weight=asked.kl_weight,
            ema_decay=choices.of_recipe("ema_decay"),
            warm_up=choices.warm_up,
            dice_weight=asked.dice_weight,
        )

    @cached_property
    def trainer(self) -> MethodTrainer:
        choices, session = self.choices, self.session
        steps, rate = choices.steps_per_epoch, choices.of_recipe("learning_rate")
        loader = make_image_loader(
            self.dataset,
            choices.of_recipe("batch_size"),
            steps,
            session.seed,
            session.options.num_workers,
        )
        groups = encoder_and_rest(self.method, rate, choices.of_recipe("head_factor"))
        optimizer = torch.optim.SGD(groups, lr=rate, momentum=0.9, weight_decay=choices.of_recipe("weight_decay"))
        scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=choices.total_steps, power=0.9)
        return session_trainer(self.method, optimizer, scheduler, loader, session, self.validator, choices.epochs)


class SceneTraining(SegmentationTraining):
    """A training on scenes."""

    parts = SCENE_PARTS

    def __init__(self, network: SegmentationNetwork, data: SceneData, choices: SceneChoices, **shared: Any) -> None:
        super().__init__(network, choices, **shared)
        self.data = data

    @cached_property
    def session(self) -> Session:  # type: ignore[override]
        asked = self.data.options
        return self.open_session(self.data.source, self.data.split, asked, self.choices, self.variant, asked.lists_dir)

    def input_size(self) -> tuple[int, int]:
        side = self.choices.of_recipe("crop")
        return side, side

    @cached_property
    def dataset(self) -> SemiSupervisedScenes:  # type: ignore[override]
        choices = self.choices
        views = SceneViews(choices.of_recipe("crop"), choices.options.image_size, choices.recipe.strong)  # type: ignore[arg-type]
        return SemiSupervisedScenes(self.data.split, views, self.data.num_classes, self.data.void)

    @cached_property
    def inferer(self) -> Any:
        choices = self.choices
        return scene_inferer(choices.options.samples, choices.of_recipe("evaluation"), choices.of_recipe("crop"))

    @cached_property
    def validator(self) -> SupervisedEvaluator:  # type: ignore[override]
        return scene_validator(
            self.method.evaluated,
            self.data.split.validation,
            self.choices.options.image_size,
            self.data.num_classes,
            self.inferer,
            self.session.device,
            self.data.void,
            self.session.amp,
        )

    def finish(self) -> None:
        """Export, test, finish the run, and say what came of it."""
        folder, choices, source = self.session.folder, self.choices, self.data.source
        predictor = ScenePredictor(
            self.method.evaluated,
            source.classes,
            choices.options.image_size,
            self.inferer,
            self.session.device,
            seed=self.session.seed,
        )
        export_segmentation(folder, self.bundle_root, predictor, choices.of_recipe("crop"))
        SceneEvaluation(
            predictor,
            self.data.split.test,
            folder.path / "evaluation",
            void=self.data.void,
            crop_to=choices.of_recipe("crop_to"),
            pavpu_window=choices.options.pavpu_window,
            pavpu_threshold_nats=choices.options.pavpu_threshold_nats,
        ).run()
        finish_run(folder, self.session.tracker)
        tell_end(self.session.path, commands_after_images(self.session.path, "IMAGES"))
