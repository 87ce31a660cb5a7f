"""The two stages of GBDL on scans: LRL (or another teacher), then the posterior network on its pseudo-labels."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from monai.engines import SupervisedEvaluator
from torch import nn

from medssl.bundle.compute import StageCost, passes_per_step
from medssl.bundle.keys import given_options
from medssl.bundle.memory_need import cached_bytes, training_bytes
from medssl.bundle.stage import patch_loader, stage_trainer
from medssl.bundle.training import PARTS, ScanTraining
from medssl.core.errors import ConfigError
from medssl.core.options import option
from medssl.core.progress import say
from medssl.engine.latent_length import LatentLength
from medssl.engine.trainer import MethodTrainer, place
from medssl.engine.validation import segmentation_validator
from medssl.inference.reconstructions import write_reconstructions
from medssl.losses.segmentation import DiceCE
from medssl.methods.gbdl import LatentLearning, PosteriorLearning
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.methods.self_training import TeacherLearning
from medssl.methods.variants import Variant, build_first_stage, build_second_stage
from medssl.report.finish import finish_stage


@dataclass(frozen=True)
class FirstStageOptions:
    """What differs in the first stage; by default it is as the second."""

    latent_epochs: int | None = option(None, "epochs of the first stage; default: half of all epochs", at_least=1)
    latent_batch_size: int | None = option(
        None, "patches in each step of the first stage; default: batch_size", at_least=1
    )
    latent_labelled_per_batch: int | None = option(
        None, "labelled patches in each step of the first stage; default: labelled_per_batch", at_least=1
    )
    latent_learning_rate: float | None = option(
        None, "learning rate of the first stage; default: learning_rate", at_least=0
    )
    latent_steps: int | None = option(
        None, "steps until the first stage's learning rate is 0; default: all its steps", at_least=1
    )
    posterior_steps: int | None = option(
        None, "steps until the second stage's learning rate is 0; default: all its steps", at_least=1
    )
    health_cases: int = option(
        8, "unlabelled cases whose hidden labels measure how good pseudo-labels are; never trained on", at_least=0
    )
    first_stage_from: str | None = option(
        None, "a run with the same split, whose finished first stage is used", place=True
    )


class GBDLTraining(ScanTraining):
    """Both stages of a variant of GBDL. teacher: the network of the first stage, as `latent#network_def` builds it.

    `start_from` and `max_grad_norm` are for the second stage, whose network is tested and exported.
    """

    parts = (*PARTS, FirstStageOptions)

    def __init__(self, variant: Variant, teacher: nn.Module, variant_name: str, **shared: Any) -> None:
        super().__init__(method="gbdl", **shared)
        self.changes, self.built_teacher, self.variant_name = variant, teacher, variant_name
        self.first_stage = given_options(FirstStageOptions, {})

    @property
    def variant(self) -> str:
        return self.variant_name

    @property
    def first_epochs(self) -> int:
        asked = self.first_stage.latent_epochs
        if self.stage_options.patch_passes is None:
            return asked or self.schedule.epochs // 2
        if asked is not None:
            raise ConfigError(f"latent_epochs {asked}: with patch_passes both stages have half of them. Leave it out.")
        return self.last_epochs[0]

    @cached_property
    def stage_costs(self) -> list[StageCost]:
        """What a step of each stage computes; it is counted only where a budget asks for it."""
        if self.stage_options.patch_passes is None:
            return super().stage_costs
        asked, schedule = self.first_stage, self.schedule
        size = asked.latent_batch_size or schedule.batch_size
        labelled = asked.latent_labelled_per_batch or schedule.labelled_per_batch
        first_batch = (labelled, size - labelled if self.changes.with_lrl else 0)
        second_batch = (schedule.labelled_per_batch, schedule.batch_size - schedule.labelled_per_batch)
        parts = {"latent": (self.first_method, first_batch), "posterior": (self.method, second_batch)}
        patch, device = self.data.patch_size, self.device
        return [
            StageCost(name, 0.5, passes_per_step(method, patch, *batch, device))
            for name, (method, batch) in parts.items()
        ]

    @cached_property
    def teacher(self) -> nn.Module:
        return place(self.built_teacher, self.device, self.network_options.channels_last)

    @cached_property
    def first_method(self) -> LatentLearning | TeacherLearning:
        weights = self.method_options
        loss = DiceCE(weights.ce_weight, weights.dice_weight)
        terms = {"mse_weight": weights.mse_weight, "kl_weight": weights.kl_weight, "kl": weights.kl}
        return build_first_stage(self.changes, self.teacher, loss, **terms)  # type: ignore[arg-type]

    @cached_property
    def pseudo_labels(self) -> PseudoLabels:
        return PseudoLabels(self.teacher, self.method_options.pseudo_samples)  # type: ignore[arg-type]

    @cached_property
    def method(self) -> PosteriorLearning:
        weights = self.method_options
        loss = DiceCE(weights.beta_ce, weights.beta_dice)
        return build_second_stage(self.changes, self.network, self.pseudo_labels, loss, pseudo=weights.pseudo)

    @cached_property
    def first_trainer(self) -> MethodTrainer:
        asked = self.first_stage
        validator = self.validator_of(self.pseudo_labels)
        LatentLength(self.teacher).attach(validator)
        loader = patch_loader(
            self.dataset,
            self.schedule,
            self.session,
            asked.latent_batch_size,
            asked.latent_labelled_per_batch,
            with_unlabelled=self.changes.with_lrl,
        )
        return stage_trainer(
            self.first_method,
            loader,
            self.session,
            validator,
            asked.latent_learning_rate or self.stage_options.learning_rate,
            self.first_epochs,
            cosine_steps=asked.latent_steps,
            stage="latent",
            checkpoints="checkpoints_latent",
            taken_from=asked.first_stage_from,
            followed_by="checkpoints",
            health=self._health(),
        )

    @cached_property
    def trainer(self) -> MethodTrainer:
        return stage_trainer(
            self.method,
            patch_loader(self.dataset, self.schedule, self.session),
            self.session,
            self.validator,
            self.stage_options.learning_rate,
            self.schedule.epochs,
            first_epoch=self.first_epochs,
            cosine_steps=self.first_stage.posterior_steps or self.stage_options.cosine_steps,
            max_grad_norm=self.stage_options.max_grad_norm,
            stage="posterior",
        )

    @property
    def evaluated(self) -> nn.Module:
        return self.network

    def run_first(self) -> None:
        """Train the first stage, and keep what LRL paints."""
        self.first_trainer.run()
        write_reconstructions(self.session.folder, self.teacher, self.dataset)

    def finish_first(self) -> None:
        """End a process that trains the first stage alone."""
        finish_stage(self.session.folder, self.session.tracker)
        say(f"The first stage is in {self.session.path}. Next: run second_stage with the same keys and --resume true.")

    def _described_method(self) -> Variant:
        return self.changes

    def _memory_bytes(self) -> int | None:
        batches = [self._batch_shape(self.first_stage.latent_batch_size), self._batch_shape()]
        cached = cached_bytes(self.data, learns_from_unlabelled=True)
        return training_bytes([self.teacher, self.network], batches, cached, with_average=False)

    def _health(self) -> SupervisedEvaluator:
        cases = self.data.split.with_hidden_labels(self.first_stage.health_cases)
        return segmentation_validator(
            self.pseudo_labels,
            self.data.whole_scans(cases),
            self.windows(),
            self.data.num_classes,
            self.device,
            self.session.amp,
            metric="pseudo_label_dice",
        )
