"""Training on pictures: a method's choices, its network, its trainer, and what comes after the last step."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from monai.engines import SupervisedEvaluator

from medssl.bundle.keys import given_by_name, given_options
from medssl.bundle.session import Session
from medssl.core.options import option
from medssl.engine.handlers import TrainingHandlers
from medssl.engine.trainer import MethodTrainer
from medssl.methods.facts import MethodFacts
from medssl.methods.parts import AveragedMethod
from medssl.report.finish import finish_run
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

OF_RECIPE = "as the method is published for the data set by default"


@dataclass(frozen=True)
class PictureOptions:
    """What is trained on pictures, and how."""

    variant: str = option("np_match", "np_match, fixmatch, flexmatch, ups, uda, mixmatch or supervised")
    divergence: str = option("js", "NP-Match: kl, js or dual_js")
    backbone: str | None = option(None, f"the network before the head; {OF_RECIPE}")
    dropout: float | None = option(None, f"probability of dropout; {OF_RECIPE}", at_least=0, at_most=1)
    hidden: int | None = option(None, f"units of the neural process; {OF_RECIPE}", at_least=1)
    norm_momentum: float | None = option(None, "of batch norms; the backbone's own by default")
    bank_size: int = option(2560, "features a class that the neural process remembers", at_least=1)
    samples: int = option(10, "latent vectors, or passes with dropout, of a prediction", at_least=1)
    batch_size: int | None = option(None, f"labelled pictures a step; {OF_RECIPE}", at_least=1)
    ratio: int | None = option(None, f"unlabelled pictures for each labelled one; {OF_RECIPE}", at_least=1)
    learning_rate: float | None = option(None, f"learning rate; {OF_RECIPE}")
    weight_decay: float | None = option(None, f"weight decay; {OF_RECIPE}", at_least=0)
    max_grad_norm: float | None = option(None, "length that longer gradients are cut to")
    confidence: float | None = option(None, f"least confidence of a pseudo-label; {OF_RECIPE}")
    uncertainty: float | None = option(None, f"highest uncertainty of a pseudo-label, in nats; {OF_RECIPE}")
    curriculum: bool | None = option(None, f"confidence asked of a class grows with what it learned; {OF_RECIPE}")
    align: bool = option(False, "let pseudo-labels have the distribution of the labels")
    unlabelled_weight: float | None = option(None, f"weight of unlabelled pictures; {OF_RECIPE}")
    divergence_weight: float = option(0.01, "NP-Match: weight of the divergence")
    ema_decay: float = option(0.999, "decay of the moving average that is evaluated", at_least=0, at_most=1)
    max_epochs: int = option(1024, "epochs", at_least=1)
    steps_per_epoch: int = option(1024, "steps an epoch", at_least=1)
    total_steps: int | None = option(None, "length of the cosine; all steps by default", at_least=1)
    test_batch: int = option(64, "pictures predicted at once", at_least=1, incidental=True)


class PictureChoices:
    """The options of a training on pictures; what is not given is the recipe's."""

    def __init__(self, data: PictureData, **listed: Any) -> None:
        self.options = given_options(PictureOptions, listed)
        self.listed = set(listed)
        name = data.options.dataset_name
        self.recipe: PictureRecipe = recipe(self.options.variant, name, self.options.divergence)

    @property
    def facts(self) -> MethodFacts:
        return self.recipe.facts

    @property
    def total_steps(self) -> int:
        return self.options.total_steps or self.options.max_epochs * self.options.steps_per_epoch

    def of_recipe(self, name: str) -> Any:
        """An option, or the recipe's value of the same name where it is not given.

        None means not given where the configuration lists the key; elsewhere it is what the user wants: none.
        """
        given = getattr(self.options, name)
        is_none_wanted = name not in self.listed and name in given_by_name([name])
        return getattr(self.recipe, name) if given is None and not is_none_wanted else given


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
    )


class PictureStage:
    """The one stage of a training on pictures, and what comes after it."""

    def __init__(self, network: Classifier, data: PictureData, choices: PictureChoices, session: Session) -> None:
        self.network, self.data, self.choices, self.session = network, data, choices, session

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
            ema_decay=choices.options.ema_decay,
            warm_up=2 * choices.total_steps // 5,
        )

    @cached_property
    def dataset(self) -> SemiSupervisedPictures:
        views = Views(self.data.size, two_weak=self.choices.recipe.two_weak)
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
        )

    @cached_property
    def trainer(self) -> MethodTrainer:
        choices, session, options = self.choices, self.session, self.session.options
        steps = choices.options.steps_per_epoch
        loader = make_picture_loader(
            self.dataset,
            choices.of_recipe("batch_size"),
            choices.of_recipe("ratio"),
            steps,
            session.seed,
            options.num_workers,
        )
        groups = parameter_groups(self.method, choices.of_recipe("weight_decay"))
        optimizer = torch.optim.SGD(groups, lr=choices.of_recipe("learning_rate"), momentum=0.9, nesterov=True)
        handlers = TrainingHandlers(
            session.folder, session.tracker, self.validator, options.val_interval, options.save_interval
        )
        return MethodTrainer(
            self.method,
            optimizer,
            loader,
            choices.options.max_epochs,
            session.device,
            lr_scheduler=CosineDecay(optimizer, choices.total_steps),
            amp=session.amp,
            seed=session.seed,
            max_grad_norm=choices.options.max_grad_norm,
            train_handlers=[handlers],
        )

    def finish(self, bundle_root: str | Path) -> None:
        """Export, test, finish the run."""
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
        )
        export_classifier(folder, bundle_root, predictor)
        PictureEvaluation(predictor, self.data.split.test, folder.path / "evaluation").run()
        finish_run(folder, tracker)
