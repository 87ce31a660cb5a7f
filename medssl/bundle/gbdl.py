"""The two stages of GBDL on scans: LRL (or another teacher), then the posterior network on its pseudo-labels."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from monai.inferers import SlidingWindowInferer
from torch import nn

from medssl.bundle.keys import given_options
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.bundle.stage import ScanSchedule, patch_loader, scan_validator, stage_trainer
from medssl.core.options import option
from medssl.engine.trainer import MethodTrainer
from medssl.engine.validation import segmentation_validator
from medssl.inference.reconstructions import write_reconstructions
from medssl.losses.segmentation import DiceCE
from medssl.methods.gbdl import GBDLOptions, LatentLearning, PosteriorLearning
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.methods.self_training import TeacherLearning
from medssl.methods.variants import Variant, build_first_stage, build_second_stage
from medssl.report.finish import finish_stage


@dataclass(frozen=True)
class FirstStageOptions:
    """What differs in the first stage; by default it is as the second."""

    latent_epochs: int | None = option(None, "epochs of the first stage; half of all by default", at_least=1)
    latent_batch_size: int | None = option(None, "patches a step of the first stage", at_least=1)
    latent_labelled_per_batch: int | None = option(None, "labelled patches a step of the first stage", at_least=1)
    latent_learning_rate: float | None = option(None, "learning rate of the first stage")
    latent_steps: int | None = option(None, "length of the first stage's cosine; its steps by default", at_least=1)
    posterior_steps: int | None = option(None, "length of the second stage's cosine; its steps by default", at_least=1)
    health_cases: int = option(8, "unlabelled cases whose pseudo-labels are compared with hidden labels", at_least=0)
    first_stage_from: str | None = option(None, "a run with the same split that lends its first stage", place=True)


class GBDLStages:
    """Both stages' methods and trainers; each is made when it is first asked for.

    teacher: the network of the first stage. learning_rate: of the second.
    """

    def __init__(
        self,
        variant: Variant,
        network: nn.Module,
        teacher: nn.Module,
        data: ScanData,
        session: Session,
        schedule: ScanSchedule,
        learning_rate: float,
        **listed: Any,
    ) -> None:
        self.variant, self.network, self.teacher = variant, network, teacher
        self.data, self.session, self.schedule = data, session, schedule
        self.learning_rate = learning_rate
        self.options = given_options(FirstStageOptions, {})
        self.weights = given_options(GBDLOptions, listed)

    @property
    def first_epochs(self) -> int:
        return self.options.latent_epochs or self.schedule.epochs // 2

    @cached_property
    def first_method(self) -> LatentLearning | TeacherLearning:
        weights = self.weights
        loss = DiceCE(weights.ce_weight, weights.dice_weight)
        terms = {"mse_weight": weights.mse_weight, "kl_weight": weights.kl_weight, "kl": weights.kl}
        return build_first_stage(self.variant, self.teacher, loss, **terms)  # type: ignore[arg-type]

    @cached_property
    def pseudo_labels(self) -> PseudoLabels:
        return PseudoLabels(self.teacher, self.weights.pseudo_samples)  # type: ignore[arg-type]

    @cached_property
    def second_method(self) -> PosteriorLearning:
        loss = DiceCE(self.weights.beta_ce, self.weights.beta_dice)
        return build_second_stage(self.variant, self.network, self.pseudo_labels, loss, pseudo=self.weights.pseudo)

    @cached_property
    def first_trainer(self) -> MethodTrainer:
        asked = self.options
        loader = patch_loader(
            self.data.mixed_patches,
            self.schedule,
            self.session,
            asked.latent_batch_size,
            asked.latent_labelled_per_batch,
            with_unlabelled=self.variant.with_lrl,
        )
        return stage_trainer(
            self.first_method,
            loader,
            self.session,
            scan_validator(self.pseudo_labels, self.data, self.session),
            asked.latent_learning_rate or self.learning_rate,
            self.first_epochs,
            cosine_steps=asked.latent_steps,
            stage="latent",
            checkpoints="checkpoints_latent",
            taken_from=asked.first_stage_from,
            followed_by="checkpoints",
            health=self._health(),
        )

    @cached_property
    def second_trainer(self) -> MethodTrainer:
        return stage_trainer(
            self.second_method,
            patch_loader(self.data.mixed_patches, self.schedule, self.session),
            self.session,
            scan_validator(self.network, self.data, self.session),
            self.learning_rate,
            self.schedule.epochs,
            first_epoch=self.first_epochs,
            cosine_steps=self.options.posterior_steps,
            max_grad_norm=self.schedule.options.max_grad_norm,
            stage="posterior",
        )

    def run_first(self) -> None:
        """Train the first stage, and keep what LRL paints."""
        self.first_trainer.run()
        write_reconstructions(self.session.folder, self.teacher, self.data.mixed_patches)

    def finish_first(self) -> None:
        """End a process that trains the first stage alone."""
        finish_stage(self.session.folder, self.session.tracker)

    def _health(self) -> Any:
        cases = self.data.split.with_hidden_labels(self.options.health_cases)
        return segmentation_validator(
            self.pseudo_labels,
            self.data.whole_scans(cases),
            SlidingWindowInferer(self.data.window_size, sw_batch_size=4, overlap=0.5),
            self.data.num_classes,
            self.session.device,
            self.session.amp,
            metric="pseudo_label_dice",
        )


def second_trainer(stages: GBDLStages, max_epochs: int | None = None) -> MethodTrainer:
    """The trainer of the second stage. max_epochs: as in the schedule, where MONAI looks for it."""
    return stages.second_trainer
