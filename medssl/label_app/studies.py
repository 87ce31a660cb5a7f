"""What the model says of every study: predicted once, kept beside the scan, forgotten when the model changes."""

import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from filelock import FileLock
from monailabel.interfaces.exception import ImageNotFoundException

from medssl.data.validate import check_case
from medssl.data.volumes import content_digest
from medssl.errors import DataError, MedsslError, error_behind
from medssl.inference.outputs import describe, map_paths, write_maps
from medssl.inference.predictor import Prediction
from medssl.label_app.datastore import StudyDatastore
from medssl.label_app.model import LoadedModel, ServedModel

SEGMENTATION, UNCERTAINTY = "original", "uncertainty"
FACTS = "medssl"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StudyResult:
    """Segmentation and entropy (bits) as .nii.gz on the scan's grid, and the record that `describe` makes of them."""

    segmentation: Path
    entropy: Path
    record: dict[str, Any]


@dataclass(eq=False)
class Studies:
    """Predicts studies with the served model, one at a time in all processes of a workspace, and keeps the results.

    The segmentation is a label of the study with the tag `original`, the entropy map one with the tag `uncertainty`;
    the record, with the weights and settings that made it, is among the facts of the study in the datastore.
    """

    datastore: StudyDatastore
    model: ServedModel

    def __post_init__(self) -> None:
        self._one_at_a_time = FileLock(self.model.workspace.root / "predicting.lock")
        self._failures: dict[str, tuple[dict[str, Any], str]] = {}

    def result(self, study: str) -> StudyResult:
        """The study's result, predicted if the present model has not done so; DataError for a scan that is none."""
        with self._one_at_a_time:
            loaded = self.model.load()
            try:
                scan = self.datastore.get_image_uri(study)
                if not scan:
                    raise ImageNotFoundException(f"{study}: no such study")
                made_by = {**loaded.settings, "scan": content_digest(scan)}
                return self._known(study, made_by) or self._predict(study, scan, loaded, made_by)
            except requests.RequestException:
                raise  # of the archive, not of the study
            except (MedsslError, RuntimeError, OSError, ValueError) as error:
                reason = str(error_behind(error) or f"{type(error).__name__}: {error}")
                self.note_failure(study, reason)
                raise DataError(reason) from error

    def result_of_file(self, scan: str, folder: Path) -> StudyResult:
        """The result for a scan that is no study of the datastore; its files are written into `folder`."""
        with self._one_at_a_time:
            loaded = self.model.load()
            return _written(_prediction("upload", scan, loaded), loaded, folder)

    def record(self, study: str) -> dict[str, Any] | None:
        """The study's record, None where the present model has made none."""
        facts, settings = self.datastore.get_image_info(study).get(FACTS, {}), self.model.load().settings
        made_by = facts.get("made_by", {})
        return facts.get("record") if all(made_by.get(key) == value for key, value in settings.items()) else None

    def failure(self, study: str) -> str | None:
        """Why the present model could not predict the study; None where it could, or has not tried."""
        settings, reason = self._failures.get(study, ({}, None))
        return reason if settings == self.model.load().settings else None

    def note_failure(self, study: str, reason: str) -> None:
        """Remember that the present model has nothing to predict here."""
        self._failures[study] = (self.model.load().settings, reason)

    def _known(self, study: str, made_by: dict[str, Any]) -> StudyResult | None:
        facts = self.datastore.get_image_info(study).get(FACTS, {})
        segmentation, entropy = (Path(self.datastore.get_label_uri(study, tag)) for tag in (SEGMENTATION, UNCERTAINTY))
        is_whole = facts.get("made_by") == made_by and segmentation.is_file() and entropy.is_file()
        return StudyResult(segmentation, entropy, facts["record"]) if is_whole else None

    def _predict(self, study: str, scan: str, loaded: LoadedModel, made_by: dict[str, Any]) -> StudyResult:
        folder = Path(tempfile.mkdtemp())
        try:
            made = _written(_prediction(study, scan, loaded), loaded, folder)
            for tag, file in ((SEGMENTATION, made.segmentation), (UNCERTAINTY, made.entropy)):
                self.datastore.save_label(study, str(file), tag, {"weights": made_by["weights"]})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        facts = {"made_by": made_by, "record": made.record}
        self.datastore.update_image_info(study, {FACTS: facts})  # last: where it stands, the files are whole
        logger.info("predicted a study with weights %s", made_by["weights"])
        found = self._known(study, made_by)
        if found is None:
            raise DataError(f"{study}: its results could not be stored. Is the disk full?")
        return found


def _prediction(name: str, scan: str, loaded: LoadedModel) -> Prediction:
    case = {"id": name, "image": scan}
    errors = [finding.message for finding in check_case(case) if finding.severity == "error"]
    if errors:
        raise DataError(f"{name}: {' '.join(errors)}")
    return loaded.predictor(case)


def _written(prediction: Prediction, loaded: LoadedModel, folder: Path) -> StudyResult:
    write_maps(prediction, folder, with_probabilities=False)
    segmentation, entropy = map_paths(folder, prediction.case_id, with_probabilities=False)
    return StudyResult(segmentation, entropy, describe(prediction, loaded.predictor.structures))
