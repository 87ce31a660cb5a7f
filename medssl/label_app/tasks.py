"""What MONAI Label asks an app for: inference, scoring and the next sample, all answered from `Studies`."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.batch_infer import BatchInferTask
from monailabel.interfaces.tasks.infer_v2 import InferTask, InferType
from monailabel.interfaces.tasks.scoring import ScoringMethod
from monailabel.interfaces.tasks.strategy import Strategy

from medssl.core.errors import DataError, MedsslError
from medssl.data.volumes import read_volume
from medssl.data.voxel_grid import Volume, spacing_of
from medssl.label_app.names import is_inside, is_name
from medssl.label_app.queue import WaitingViewers, is_scored_now, next_study, next_unscored
from medssl.label_app.result_files import label_file
from medssl.label_app.studies import Studies, StudyResult
from medssl.review.strategies import STRATEGIES
from medssl.uncertainty.ranking import uncertainty_bands


class StudyInference(InferTask):
    """A model of the viewers' lists: `shown` turns a study's result into the label map they get.

    request: `image` is a study's id, or a scan that was sent along (a file in `uploads`). The JSON is the record of
    `describe`, with `label_names` (name -> id).
    """

    def __init__(
        self,
        studies: Studies,
        labels: dict[int, str],
        description: str,
        shown: Callable[[StudyResult], Volume],
        uploads: tuple[Path, ...],
        viewers: WaitingViewers,
    ) -> None:
        names = {name: number for number, name in labels.items()}
        super().__init__(InferType.SEGMENTATION, names, dimension=3, description=description)
        self.studies, self.shown, self.uploads, self.viewers = studies, shown, uploads, viewers

    def is_valid(self) -> bool:
        return True

    def __call__(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A temporary file with the label map, which the caller removes, and the JSON."""
        extension = str(request.get("result_extension") or ".nii.gz")
        folder = Path(tempfile.mkdtemp())
        try:
            with self.viewers:
                result = self._result(str(request.get("image", "")), folder)
            labels = self.shown(result)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        file = label_file(labels, extension, bool(request.get("result_compress", True)))
        return str(file), {**result.record, "label_names": self.labels, "volumes_ml": self._volumes_ml(labels)}

    def _result(self, image: str, folder: Path) -> StudyResult:
        if is_name(image):
            return self.studies.result(image)
        if any(is_inside(image, root) for root in self.uploads) and Path(image).exists():
            return self.studies.result_of_file(image, folder)
        raise DataError("image: expected the id of a study, or a scan that is sent along.")

    def _volumes_ml(self, labels: Volume) -> dict[str, float]:
        voxel_ml = float(np.prod(spacing_of(labels.affine))) / 1000
        return {
            name: round(float((labels.array == number).sum()) * voxel_ml, 4) for name, number in self.labels.items()
        }


def segmentation_of(result: StudyResult) -> Volume:
    """The predicted structures."""
    return read_volume(result.segmentation)


@dataclass(frozen=True)
class BandsOf:
    """Low, middle and high uncertainty (BANDS) as label ids."""

    num_classes: int

    def __call__(self, result: StudyResult) -> Volume:
        entropy = read_volume(result.entropy)
        return Volume(uncertainty_bands(entropy.array, self.num_classes), entropy.affine)


class BatchPrediction(BatchInferTask):
    """Predicts many studies, one after another; one that fails does not stop the others (MONAI Label needs a GPU)."""

    def __call__(self, request: dict[str, Any], datastore: Datastore, infer: Callable) -> dict[str, Any]:
        """Study -> its JSON, or `failure` with the reason."""
        results = {}
        for study in sorted(str(name) for name in self.get_images(request, datastore)):
            try:
                outcome = infer({**request, "image": study, "save_label": True})
            except MedsslError as error:
                results[study] = {"failure": str(error)}
            else:
                Path(outcome["file"]).unlink(missing_ok=True)
                results[study] = outcome["params"]
        return results


class UncertaintyScoring(ScoringMethod):
    """Scores every study that has no score by the present model; the server's own thread does the same, unasked."""

    def __init__(self, studies: Studies) -> None:
        super().__init__("Entropy around the predicted structures, from Monte Carlo samples")
        self.studies = studies

    def __call__(self, request: dict[str, Any], datastore: Datastore) -> dict[str, Any]:
        scored, failed = 0, 0
        while (study := next_unscored(self.studies)) is not None:
            if is_scored_now(self.studies, study):
                scored += 1
            else:
                failed += 1
        return {"scored": scored, "failed": failed}


class QueueStrategy(Strategy):
    """One of medssl's orders of review (STRATEGIES); `structure` of the request names one for the strategy of it."""

    def __init__(self, studies: Studies, name: str, seed: int = 0) -> None:
        super().__init__(STRATEGIES[name])
        self.studies, self.name, self.seed = studies, name, seed

    def __call__(self, request: dict[str, Any], datastore: Datastore) -> dict[str, Any] | None:
        structure = request.get("structure") if self.name == "structure" else None
        return next_study(self.studies, self.name, self.seed, structure)
