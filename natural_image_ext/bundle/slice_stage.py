"""Training on the slices of scans: the framework of scenes on other data, tested on whole scans."""

from functools import cached_property
from pathlib import Path

from monai.engines import SupervisedEvaluator

from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.bundle.stage import scan_validator
from medssl.data.slice_views import SliceViews
from medssl.data.slices import SemiSupervisedSlices
from medssl.inference.evaluation import Evaluation
from medssl.inference.predictor import Predictor
from medssl.inference.slice_export import export_slices
from medssl.inference.slice_sampling import SliceInferer
from medssl.report.finish import finish_run
from natural_image_ext.bundle.scene_stage import SceneChoices, SegmentationStage
from natural_image_ext.networks.segmentation import SegmentationNetwork


class SliceStage(SegmentationStage):
    """The stage on slices."""

    def __init__(self, network: SegmentationNetwork, data: ScanData, choices: SceneChoices, session: Session) -> None:
        super().__init__(network, choices, session)
        self.data = data

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
        return scan_validator(self.method.evaluated, self.data, self.session, inferer)

    def finish(self, bundle_root: str | Path) -> None:
        """Export, test, finish the run."""
        folder, asked = self.session.folder, self.choices.options
        inferer = SliceInferer(samples=asked.samples, slice_batch=asked.slice_batch)
        predictor = Predictor(
            self.method.evaluated, self.data.pipeline, inferer, self.session.device, seed=self.session.seed
        )
        export_slices(folder, bundle_root, predictor)
        Evaluation(predictor, self.data.split.role("test"), folder.path / "evaluation").run()
        finish_run(folder, self.session.tracker)
