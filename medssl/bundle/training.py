"""A training on scans, from its choices to its last step: what the train.json of a bundle for scans is wired with."""

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import torch
from monai.engines import SupervisedEvaluator
from monai.inferers import SlidingWindowInferer
from torch import nn

from medssl.bundle.compute import StageCost, passes_per_step
from medssl.bundle.evaluation import InferenceOptions, ScanEvaluation, tell_stride, window_of
from medssl.bundle.keys import given_by_name, given_options
from medssl.bundle.memory_need import cached_bytes, require_training_memory, training_bytes
from medssl.bundle.networks import NetworkOptions, prepared_network, require_fitting
from medssl.bundle.scan_data import ScanData, ScanDataOptions
from medssl.bundle.session import Session, SessionOptions, default_run_name
from medssl.bundle.stage import ScanSchedule, StageOptions, kept_as, scan_loss, stage_loader, stage_trainer
from medssl.bundle.story import TrainingPlan, commands_after_scans, size_text, tell_end
from medssl.core.options import make_options, marked, names_of
from medssl.core.output_folder import require_output_folder
from medssl.data.scan_shapes import require_fitting_patch
from medssl.engine.trainer import MethodTrainer
from medssl.engine.validation import segmentation_validator
from medssl.inference.export import require_bundle
from medssl.inference.scoring import ScoringOptions
from medssl.methods.method import EarlierStage, Method, Schedule
from medssl.methods.parts import take_weights
from medssl.methods.registry import find_method

PARTS = (ScanDataOptions, SessionOptions, NetworkOptions, StageOptions, InferenceOptions, ScoringOptions)


class ScanTraining:
    """A method that trains a network on scans in one stage; each part is made when it is first asked for.

    network: as `network_def` builds it. options: of the method; those of the user's command are taken besides. listed:
    the choices that the configuration lists, options of any of PARTS. All options are checked at once.
    """

    parts: tuple[type, ...] = PARTS

    def __init__(
        self,
        bundle: str,
        bundle_root: str | Path,
        method: str,
        network: nn.Module,
        data: ScanData,
        device: torch.device | str,
        options: Mapping[str, Any] | None = None,
        **listed: Any,
    ) -> None:
        self.bundle, self.bundle_root, self.method_name = bundle, bundle_root, method
        self.data, self.built_network, self.device = data, network, torch.device(device)
        own = {part: {key: listed[key] for key in names_of(part) if key in listed} for part in self.parts}
        self.session_options = given_options(SessionOptions, own[SessionOptions])
        self.network_options = given_options(NetworkOptions, own[NetworkOptions])
        self.stage_options = given_options(StageOptions, own[StageOptions])
        self.inference_options = given_options(InferenceOptions, own[InferenceOptions])
        self.scoring_options = given_options(ScoringOptions, own[ScoringOptions])
        kind = find_method(method)
        given = {**given_by_name(names_of(kind.Options)), **(options or {})}
        self.method_options = make_options(kind.Options, given)

    @property
    def variant(self) -> str:
        """What the run's folder is named after besides the data."""
        return "" if self.bundle == "mcdropout_unet3d" else self.method_name.rpartition(":")[2]

    @cached_property
    def session(self) -> Session:
        asked = self.data.options
        name = default_run_name(self.bundle, asked.dataset_name, asked.labelled, asked.seed, self.variant)
        return Session(
            self.bundle,
            self._described_method(),
            self.data.pipeline,
            self.data.split,
            self.network,
            self.device,
            self.session_options,
            seed=asked.seed,
            run_name=name,
            places=places_of(*self.parts),
            method_options=self.method_options,
        )

    @cached_property
    def network(self) -> nn.Module:
        """The network on its device, checked against data and inference, with the weights it starts from."""
        asked = self.inference_options
        require_fitting(self.built_network, self.data, asked.samples, asked.backend)
        return prepared_network(self.built_network, self.device, self.network_options, self.session_options)

    @cached_property
    def stages(self) -> list[EarlierStage]:
        """All stages of the training, the method's own last."""
        kind = find_method(self.method_name)
        earlier = list(kind.earlier_stages(self.method_options))
        left = 1.0 - sum(stage.share for stage in earlier)
        return [*earlier, EarlierStage(self.method_name.rpartition(":")[2], kind, self.method_options, left)]

    @cached_property
    def schedule(self) -> ScanSchedule:
        """How long the training is; with a budget of patch passes, a step of each stage is measured for it."""
        return ScanSchedule(self.data, self.stage_options)

    @property
    def last_epochs(self) -> list[int]:
        """The last epoch of each stage."""
        return self.schedule.divide(self.stage_costs, self.stage_options.patch_passes)

    def stage_method(self, number: int) -> Method:
        """The method of a stage, made anew; it starts from the weights that the network has now."""
        stage, first = self.stages[number], self.first_epoch_of(number)
        steps = self.schedule.steps_per_epoch
        schedule = Schedule((self.last_epochs[number] - first) * steps, steps)
        return stage.method(self.network, scan_loss(), stage.options, schedule)

    def first_epoch_of(self, number: int) -> int:
        """The epoch after which a stage begins."""
        return self.last_epochs[number - 1] if number else 0

    @cached_property
    def method(self) -> Method:
        return self.stage_method(len(self.stages) - 1)

    @property
    def evaluated(self) -> nn.Module:
        """The network that is validated, tested and exported."""
        return self.method.evaluated

    @cached_property
    def dataset(self) -> Any:
        """What is trained on."""
        return self.data.patches_for(self.session.method_facts)

    @cached_property
    def validator(self) -> SupervisedEvaluator:
        return self.validator_of(self.evaluated)

    def validator_of(self, network: nn.Module) -> SupervisedEvaluator:
        """Validation of a network by windows half a window apart."""
        scans, classes = self.data.validation_scans, self.data.num_classes
        return segmentation_validator(network, scans, self.windows(), classes, self.device, self.session.amp)

    def windows(self) -> SlidingWindowInferer:
        """How scans are cut while training."""
        return SlidingWindowInferer(window_of(self.inference_options, self.data), sw_batch_size=4, overlap=0.5)

    @cached_property
    def trainer(self) -> MethodTrainer:
        """The trainer of the last stage."""
        return self.trainer_of_stage(len(self.stages) - 1, self.method, self.validator)

    def trainer_of_stage(self, number: int, method: Method, validator: SupervisedEvaluator) -> MethodTrainer:
        asked, stage = self.stage_options, self.stages[number]
        return stage_trainer(
            method,
            stage_loader(stage.method, self.dataset, self.schedule, self.session),
            self.session,
            validator,
            asked.learning_rate,
            self.last_epochs[number],
            self.first_epoch_of(number),
            cosine_steps=asked.cosine_steps,
            weight_decay=asked.weight_decay,
            warm_up_steps=asked.warm_up_steps,
            max_grad_norm=asked.max_grad_norm,
            **kept_as([stage.name for stage in self.stages], number),
        )

    def run_earlier_stages(self) -> None:
        """Train the stages before the last one; each hands what it evaluates on to the next."""
        for number in range(len(self.stages) - 1):
            method = self.stage_method(number)
            self.trainer_of_stage(number, method, self.validator_of(method.evaluated)).run()
            take_weights(self.network, method.evaluated)

    @cached_property
    def stage_costs(self) -> list[StageCost]:
        """What a step of each stage computes; it is counted only where a budget asks for it."""
        if self.stage_options.patch_passes is None:
            return [StageCost(stage.name, stage.share, 1.0) for stage in self.stages]
        return [StageCost(stage.name, stage.share, self._passes_of(stage)) for stage in self.stages]

    def _passes_of(self, stage: EarlierStage) -> float:
        size, labelled = self.schedule.batch_size, self.schedule.labelled_per_batch
        learns_mixed = self.session.method_facts.learns_from_unlabelled and stage.method.needs_unlabelled
        counts = (labelled, size - labelled) if learns_mixed else (size, 0)
        with torch.random.fork_rng():  # a method may draw weights
            method = stage.method(self.network, scan_loss(), stage.options)
        return passes_per_step(method, self.data.patch_size, *counts, self.device)

    def check(self) -> None:
        """Say what is going to be done; raise before anything is written, what takes least time first.

        ConfigError for a back end, a network, a folder, a patch or a need of memory that does not fit, DataError for a
        bad case.
        """
        require_bundle(self.bundle_root, self.inference_options.backend)
        session = self.session  # its network is checked
        if idist.get_rank() == 0:  # it may have made the folder when the others look
            require_output_folder(session.path, session.options.resume)
        if self.data.options.patch_size is not None:
            require_fitting_patch(self.data.split.cases, self.data.pipeline)
        plan = self.plan()
        plan.tell()
        tell_stride(self.inference_options, self.data)
        require_training_memory(plan.memory_bytes, self.device)
        self.data.check(session.options.runs_dir)

    def plan(self) -> TrainingPlan:
        """What is going to be trained, on what and for how long."""
        asked, schedule, patch = self.data.options, self.schedule, self.data.patch_size
        return TrainingPlan(
            method=self.session.title,
            data=f"{asked.dataset_name} in {asked.dataset_dir}",
            cases="cases",
            counts=self.data.split.counts,
            network=self.network,
            input=f"{size_text(patch)} voxels, {schedule.batch_size} patches a step",
            voxels_per_step=schedule.batch_size * math.prod(patch),
            epochs=self.last_epochs[-1],
            steps_per_epoch=schedule.steps_per_epoch,
            device=self.device,
            folder=self.session.path,
            memory_bytes=self._memory_bytes(),
        )

    def finish(self) -> None:
        """Export, test, finish the run, and say what came of it."""
        options = (self.inference_options, self.scoring_options)
        ScanEvaluation(self.evaluated, self.data, self.session, self.bundle_root, *options).run()
        tell_end(self.session.path, commands_after_scans(self.session.path))

    def _memory_bytes(self) -> int | None:
        """What the training needs, by an estimate."""
        with_unlabelled = self.session.method_facts.learns_from_unlabelled
        cached = cached_bytes(self.data, with_unlabelled)
        return training_bytes([self.network], [self._batch_shape()], cached, with_average=with_unlabelled)

    def _batch_shape(self, batch_size: int | None = None) -> tuple[int, ...]:
        return (batch_size or self.schedule.batch_size, 1, *self.data.patch_size)

    def _described_method(self) -> Any:
        """What the session notes of the method: anything with `facts`."""
        return find_method(self.method_name)


def trainer_of(training: Any, max_epochs: int | None = None) -> MethodTrainer:
    """The last stage's trainer. max_epochs: where MONAI looks for it; given here it holds for the whole training."""
    if max_epochs is not None and max_epochs != training.schedule.epochs:
        training.schedule.epochs = max_epochs
    return training.trainer


def places_of(*parts: type) -> list[str]:
    """The keys in which runs may differ and still be the same experiment."""
    incidental = [key for part in parts for key in marked(part, "incidental")]
    return list(dict.fromkeys([*incidental, *PLACES_IN_JSON]))


PLACES_IN_JSON = ("bundle_root", "device")  # listed by every train.json, options of no part
