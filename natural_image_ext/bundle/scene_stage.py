"""Training on scenes: a framework's choices, its network, its trainer, and what comes after the last step."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from monai.engines import SupervisedEvaluator

from medssl.bundle.keys import given_by_name, given_options
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.core.options import option
from medssl.data.image_batches import SemiSupervisedImages, make_image_loader
from medssl.engine.handlers import TrainingHandlers
from medssl.engine.trainer import MethodTrainer
from medssl.methods.facts import MethodFacts
from medssl.methods.parts import AveragedMethod
from medssl.report.finish import finish_run
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

OF_RECIPE = "as the framework is published for the data set by default"


@dataclass(frozen=True)
class SceneOptions:
    """What is trained on scenes or slices, and how."""

    variant: str = option("u2pl", "u2pl, mean_teacher, ps_mt, augseg, cps or supervised")
    head: str = option("np", "np (neural process), dropout or plain")
    image_size: int | None = option(None, "longer side that images are brought to; their own by default", at_least=1)
    crop: int | None = option(None, f"side of the squares trained on; {OF_RECIPE}", at_least=1)
    encoder: str = option("resnet50", "the encoder, by its name in segmentation-models-pytorch")
    encoder_weights: str | None = option(None, "a file with the encoder's weights, or imagenet to fetch them")
    channels: int = option(256, "channels of context in the decoder", at_least=1)
    detail: int = option(256, "channels of fine detail beside them", at_least=1)
    dropout: float = option(0.1, "probability of the head with dropout", at_least=0, at_most=1)
    aggregator: str = option("attention", "how the neural process joins its context: attention or mean")
    bank_size: int = option(2560, "features a class that the neural process remembers", at_least=1)
    samples: int = option(5, "latent maps, or passes with dropout, of a prediction", at_least=0)
    evaluation: str | None = option(None, f"whole images, or sliding crops; {OF_RECIPE}")
    crop_to: int | None = option(None, f"centre of the test images that counts; {OF_RECIPE}", at_least=1)
    pavpu_window: int = option(64, "side of PAvPU's windows, in pixels", at_least=1)
    pavpu_threshold_nats: float = option(0.4, "PAvPU: certain below this entropy")
    batch_size: int | None = option(None, f"labelled, and unlabelled, images a step; {OF_RECIPE}", at_least=1)
    learning_rate: float | None = option(None, f"learning rate of the encoder; {OF_RECIPE}")
    head_factor: float | None = option(None, f"how many times faster all else learns; {OF_RECIPE}")
    weight_decay: float | None = option(None, f"weight decay; {OF_RECIPE}", at_least=0)
    unlabelled_weight: float | None = option(None, f"weight of unlabelled images; {OF_RECIPE}")
    kl_weight: float = option(0.005, "weight of the KL of a neural process")
    dice_weight: float = option(0.0, "weight of the Dice loss on labels, beside their cross-entropy", at_least=0)
    ema_decay: float | None = option(None, f"decay of the moving average that teaches; {OF_RECIPE}")
    warm_up: int | None = option(None, f"first steps, of labels alone; {OF_RECIPE}", at_least=0)
    max_epochs: int | None = option(None, f"epochs; {OF_RECIPE}", at_least=1)
    steps_per_epoch: int | None = option(None, "steps an epoch; every unlabelled image once by default", at_least=1)
    total_steps: int | None = option(None, "steps until the learning rate is 0; all steps by default", at_least=1)
    structure_share: float = option(0.5, "slices: share of labelled draws with a structure", at_least=0, at_most=1)
    slice_batch: int = option(8, "slices predicted at once", at_least=1, incidental=True)


class SceneChoices:
    """The options of a training on scenes or slices; what is not given is the recipe's."""

    def __init__(self, data: SceneData | ScanData, **listed: Any) -> None:
        self.options = given_options(SceneOptions, listed)
        self.data, self.listed = data, set(listed)
        self.recipe: SceneRecipe = seg_recipe(self.options.variant, data.options.dataset_name, self.options.head)

    @property
    def facts(self) -> MethodFacts:
        return self.recipe.facts

    def of_recipe(self, name: str) -> Any:
        """An option, or the recipe's value of the same name where it is not given.

        None means not given where the configuration lists the key; elsewhere it is what the user wants: none.
        """
        given = getattr(self.options, name)
        is_none_wanted = name not in self.listed and name in given_by_name([name])
        return getattr(self.recipe, name) if given is None and not is_none_wanted else given

    @property
    def epochs(self) -> int:
        return self.options.max_epochs or self.recipe.epochs

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
        encoder_weights=asked.encoder_weights,
    )


class SegmentationStage:
    """The one stage of a training on scenes or slices; they differ in their data and in what comes after it."""

    dataset: SemiSupervisedImages
    validator: SupervisedEvaluator

    def __init__(self, network: SegmentationNetwork, choices: SceneChoices, session: Session) -> None:
        self.network, self.choices, self.session = network, choices, session

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
        choices, session, options = self.choices, self.session, self.session.options
        steps, rate = choices.steps_per_epoch, choices.of_recipe("learning_rate")
        loader = make_image_loader(
            self.dataset,
            choices.of_recipe("batch_size"),
            steps,
            session.seed,
            options.num_workers,
        )
        groups = encoder_and_rest(self.method, rate, choices.of_recipe("head_factor"))
        optimizer = torch.optim.SGD(groups, lr=rate, momentum=0.9, weight_decay=choices.of_recipe("weight_decay"))
        scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=choices.total_steps, power=0.9)
        handlers = TrainingHandlers(
            session.folder, session.tracker, self.validator, options.val_interval, options.save_interval
        )
        return MethodTrainer(
            self.method,
            optimizer,
            loader,
            choices.epochs,
            session.device,
            lr_scheduler=scheduler,
            amp=session.amp,
            seed=session.seed,
            train_handlers=[handlers],
        )


class SceneStage(SegmentationStage):
    """The stage on scenes."""

    def __init__(self, network: SegmentationNetwork, data: SceneData, choices: SceneChoices, session: Session) -> None:
        super().__init__(network, choices, session)
        self.data = data

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

    def finish(self, bundle_root: str | Path) -> None:
        """Export, test, finish the run."""
        folder, choices, source = self.session.folder, self.choices, self.data.source
        predictor = ScenePredictor(
            self.method.evaluated,
            source.classes,
            choices.options.image_size,
            self.inferer,
            self.session.device,
            seed=self.session.seed,
        )
        export_segmentation(folder, bundle_root, predictor, choices.of_recipe("crop"))
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
