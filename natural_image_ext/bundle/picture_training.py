"""Training on pictures: a method's choices, its network, its trainer, and what comes after the last step."""

from functools import cached_property
from typing import Any

import torch
from monai.engines import SupervisedEvaluator

from medssl.bundle.keys import given_by_name, given_options
from medssl.bundle.session import Session
from medssl.bundle.stage import session_trainer
from medssl.bundle.story import tell_end
from medssl.core.options import names_of
from medssl.engine.trainer import MethodTrainer
from medssl.methods.facts import MethodFacts
from medssl.methods.parts import AveragedMethod
from medssl.report.finish import finish_run
from natural_image_ext.bundle.begin import PICTURE_PARTS, NaturalTraining, commands_after_images
from natural_image_ext.bundle.options import PictureOptions
from natural_image_ext.bundle.picture_data import PictureData
from natural_image_ext.data.views import SemiSupervisedPictures, Views, make_picture_loader
from natural_image_ext.inference.evaluation import PictureEvaluation
from natural_image_ext.inference.export import export_classifier
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.inference.sampling import SampledInferer
from natural_image_ext.methods.classification.recipes import PictureRecipe, build_method, recipe
from natural_image_ext.networks.classifier import Classifier, build_classifier
from natural_image_ext.optimisation import CosineDecay, parameter_groups
from natural_image_ext.validation import classification_validator


class PictureChoices:
    """The options of a training on pictures; what is not given is the recipe's."""

    def __init__(self, data: PictureData, **listed: Any) -> None:
        self.options = given_options(PictureOptions, listed)
        self.given_as_none = set(given_by_name(set(names_of(PictureOptions)) - set(listed)))
        self.epochs = self.options.max_epochs
        name = data.options.dataset_name
        self.recipe: PictureRecipe = recipe(self.options.variant, name, self.options.divergence)

    @property
    def facts(self) -> MethodFacts:
        return self.recipe.facts

    @property
    def steps_per_epoch(self) -> int:
        return self.options.steps_per_epoch

    @property
    def total_steps(self) -> int:
        return self.options.total_steps or self.epochs * self.options.steps_per_epoch

    def of_recipe(self, name: str) -> Any:
        """An option, or the recipe's value of the same name where it is not given; None may be given, too."""
        given = getattr(self.options, name)
        is_given = given is not None or name in self.given_as_none
        return given if is_given else getattr(self.recipe, name)


def picture_network(data: PictureData, choices: PictureChoices) -> Classifier:
    """The backbone with the head that the recipe asks for."""
    return build_classifier(
        backbone=choices.of_recipe("backbone"),
        num_classes=data.num_classes,
        head=choices.recipe.head,
        dropout=choices.of_recipe("dropout"),
        hidden=choices.of_recipe("hidden"),
        samples=choices.options.samples,
        bank_size=choices.options.bank_size,
        norm_momentum=choices.options.norm_momentum,
        activation=choices.options.activation,  # type: ignore[arg-type]
        head_norm=choices.options.head_norm,  # type: ignore[arg-type]
        head_dropout=choices.options.head_dropout,
        head_width=choices.options.head_width,
    )


class PictureTraining(NaturalTraining):
    """The one stage of a training on pictures, and what comes before and after it."""

    bundle = "np_match"
    images = "pictures"
    parts = PICTURE_PARTS

    def __init__(self, network: Classifier, data: PictureData, choices: PictureChoices, **shared: Any) -> None:
        super().__init__(network, **shared)
        self.data, self.choices = data, choices

    @cached_property
    def session(self) -> Session:
        asked, variant = self.data.options, self.choices.options.variant
        return self.open_session(self.data.source, self.data.split, asked, self.choices, variant)

    @property
    def schedule(self) -> PictureChoices:
        return self.choices

    def input_size(self) -> tuple[int, int]:
        return self.data.size, self.data.size

    def images_a_step(self) -> tuple[int, int]:
        labelled = self.choices.of_recipe("batch_size")
        return labelled, labelled * self.choices.of_recipe("ratio")

    @cached_property
    def method(self) -> AveragedMethod:
        choices = self.choices
        return build_method(
            choices.recipe,
            self.network,
            num_classes=self.data.num_classes,
            num_unlabelled=self.data.split.counts["unlabelled"],
            confidence=choices.of_recipe("confidence"),
            uncertainty=choices.of_recipe("uncertainty"),
            curriculum=choices.of_recipe("curriculum"),
            align=choices.options.align,
            unlabelled_weight=choices.of_recipe("unlabelled_weight"),
            samples=choices.options.samples,
            divergence=choices.options.divergence,
            divergence_weight=choices.options.divergence_weight,
            normalise=choices.options.normalise,
            ema_decay=choices.options.ema_decay,
            warm_up=2 * choices.total_steps // 5,
        )

    @cached_property
    def dataset(self) -> SemiSupervisedPictures:
        views = Views(self.data.size, two_weak=self.choices.recipe.two_weak, resize_to=self.data.resize_to)
        return SemiSupervisedPictures(self.data.split, views, self.data.options.keep_in_memory)

    @property
    def inferer(self) -> SampledInferer:
        return SampledInferer(self.choices.options.samples)

    @cached_property
    def validator(self) -> SupervisedEvaluator:
        return classification_validator(
            self.method.evaluated,
            self.data.split.validation,
            self.data.size,
            self.inferer,
            self.session.device,
            self.choices.options.test_batch,
            self.session.amp,
            self.data.resize_to,
        )

    @cached_property
    def trainer(self) -> MethodTrainer:
        choices, session = self.choices, self.session
        steps = choices.options.steps_per_epoch
        loader = make_picture_loader(
            self.dataset,
            choices.of_recipe("batch_size"),
            choices.of_recipe("ratio"),
            steps,
            session.seed,
            session.options.num_workers,
        )
        groups = parameter_groups(self.method, choices.of_recipe("weight_decay"))
        optimizer = torch.optim.SGD(groups, lr=choices.of_recipe("learning_rate"), momentum=0.9, nesterov=True)
        return session_trainer(
            self.method,
            optimizer,
            CosineDecay(optimizer, choices.total_steps),
            loader,
            session,
            self.validator,
            choices.epochs,
            max_grad_norm=choices.of_recipe("max_grad_norm") or None,
        )

    def finish(self) -> None:
        """Export, test, finish the run, and say what came of it."""
        folder, tracker = self.session.folder, self.session.tracker
        source = self.data.source
        predictor = PicturePredictor(
            self.method.evaluated,
            source.classes,
            self.data.size,
            self.inferer,
            self.session.device,
            seed=self.session.seed,
            batch_size=self.choices.options.test_batch,
            resize_to=self.data.resize_to,
        )
        export_classifier(folder, self.bundle_root, predictor)
        PictureEvaluation(predictor, self.data.split.test, folder.path / "evaluation").run()
        finish_run(folder, tracker)
        tell_end(self.session.path, commands_after_images(self.session.path, "PICTURES"))
