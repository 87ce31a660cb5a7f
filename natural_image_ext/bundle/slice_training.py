"""Training on the slices of scans: the framework of scenes on other data, tested on whole scans."""

from functools import cached_property
from typing import Any

from monai.engines import SupervisedEvaluator

from medssl.bundle.keys import given_options
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.bundle.story import commands_after_scans, tell_end
from medssl.data.slice_views import SliceViews
from medssl.data.slices import SemiSupervisedSlices
from medssl.engine.validation import segmentation_validator
from medssl.inference.evaluation import Evaluation
from medssl.inference.predictor import Predictor
from medssl.inference.scoring import ScoringOptions
from medssl.inference.slice_export import export_slices
from medssl.inference.slice_sampling import SliceInferer
from medssl.report.finish import finish_run
from natural_image_ext.bundle.begin import SLICE_PARTS
from natural_image_ext.bundle.scene_training import SceneChoices, SegmentationTraining
from natural_image_ext.networks.segmentation import SegmentationNetwork


class SliceTraining(SegmentationTraining):
    """A training on slices."""

    images = "scans"
    parts = SLICE_PARTS

    def __init__(self, network: SegmentationNetwork, data: ScanData, choices: SceneChoices, **shared: Any) -> None:
        super().__init__(network, choices, **shared)
        self.data = data

    @cached_property
    def session(self) -> Session:  # type: ignore[override]
        data = self.data
        return self.open_session(data.pipeline, data.split, data.options, self.choices, self.variant)

    def input_size(self) -> tuple[int, int]:
        height, width, _depth = self.data.patch_size
        return height, width

    @cached_property
    def dataset(self) -> SemiSupervisedSlices:  # type: ignore[override]
        views = SliceViews(self.data.patch_size, self.choices.recipe.strong)  # type: ignore[arg-type]
        return SemiSupervisedSlices(
            self.data.split,
            self.data.pipeline,
            views,
            self.choices.options.structure_share,
            self.data.options.cache,
            self.data.options.cache_dir,
        )

    @cached_property
    def validator(self) -> SupervisedEvaluator:  # type: ignore[override]
        inferer = SliceInferer(samples=0, slice_batch=self.choices.options.slice_batch)
        scans, classes = self.data.validation_scans, self.data.num_classes
        return segmentation_validator(self.method.evaluated, scans, inferer, classes, self.device, self.session.amp)

    def finish(self) -> None:
        """Export, test, finish the run, and say what came of it."""
        folder, asked = self.session.folder, self.choices.options
        inferer = SliceInferer(samples=asked.samples, slice_batch=asked.slice_batch)
        predictor = Predictor(
            self.method.evaluated, self.data.pipeline, inferer, self.session.device, seed=self.session.seed
        )
        export_slices(folder, self.bundle_root, predictor)
        scoring = given_options(ScoringOptions, {}).settings()
        Evaluation(predictor, self.data.split.role("test"), folder.path / "evaluation", **scoring).run()
        finish_run(folder, self.session.tracker)
        tell_end(self.session.path, commands_after_scans(self.session.path))
