"""What the model says of every study: predicted once, kept beside the scan, forgotten when the model changes."""

import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from monailabel.interfaces.exception import ImageNotFoundException, MONAILabelException

from medssl.core.errors import DataError, error_behind
from medssl.data.validate import check_case
from medssl.data.volumes import content_digest
from medssl.inference.outputs import describe, map_paths, write_maps
from medssl.inference.predictor import Prediction
from medssl.label_app.datastore import FACTS, StudyDatastore
from medssl.label_app.download import ARCHIVE_AWAY
from medssl.label_app.model import LoadedModel, ServedModel
from medssl.label_app.tags import SEGMENTATION, UNCERTAINTY

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
        self._failures: dict[str, tuple[dict[str, Any], str, str]] = {}

    def result(self, study: str) -> StudyResult:
        """The study's result, predicted if the present model has not done so; DataError for a scan that is none."""
        with self._one_at_a_time:
            loaded, version = self.model.load(), self.datastore.version(study)
            try:
                scan = self.datastore.get_image_uri(study)
                if not scan:
                    raise ImageNotFoundException(f"{study}: no such study")
                made_by = {**loaded.settings, "scan": content_digest(scan), "version": version}
                result = self._known(study, made_by) or self._predict(study, scan, loaded, made_by)
            except (*ARCHIVE_AWAY, MONAILabelException):
                raise  # which is not the study's fault
            except Exception as error:  # whatever it is, the next study must have its turn
                reason = str(error_behind(error) or f"{type(error).__name__}: {error}")
                self.note_failure(study, reason, version)
                raise DataError(reason) from error
            self._failures.pop(study, None)
            return result

    def result_of_file(self, scan: str, folder: Path) -> StudyResult:
        """The result for a scan that is no study of the datastore; its files are written into `folder`."""
        with self._one_at_a_time:
            loaded = self.model.load()
            return _written(_prediction("upload", scan, loaded), loaded, folder)

    def record(self, study: str) -> dict[str, Any] | None:
        """The study's record, None where the present model has made none of the study as it is now."""
        facts, made_for = self._facts(study), {**self.model.load().settings, "version": self.datastore.version(study)}
        made_by = {"version": "", **facts.get("made_by", {})}
        return facts.get("record") if all(made_by.get(key) == value for key, value in made_for.items()) else None

    def failure(self, study: str) -> str | None:
        """Why the present model could not predict the study as it is now; None where it could, or has not tried."""
        settings, version, reason = self._failures.get(study, ({}, "", None))
        is_of_now = settings == self.model.load().settings and version == self.datastore.version(study)
        return reason if is_of_now else None

    def note_failure(self, study: str, reason: str, version: str | None = None) -> None:
        """Remember that the present model has nothing to predict here, until more of the study arrives."""
        version = self.datastore.version(study) if version is None else version
        self._failures[study] = (self.model.load().settings, version, reason)

    def _facts(self, study: str) -> dict[str, Any]:
        facts = self.datastore.get_image_info(study).get(FACTS)
        return facts if isinstance(facts, dict) else {}

    def _known(self, study: str, made_by: dict[str, Any]) -> StudyResult | None:
        facts = self._facts(study)
        segmentation, entropy = (Path(self.datastore.get_label_uri(study, tag)) for tag in (SEGMENTATION, UNCERTAINTY))
        is_made = {"version": "", **facts.get("made_by", {})} == made_by
        is_whole = is_made and segmentation.is_file() and entropy.is_file()
        return StudyResult(segmentation, entropy, facts["record"]) if is_whole else None

    def _predict(self, study: str, scan: str, loaded: LoadedModel, made_by: dict[str, Any]) -> StudyResult:
        folder = Path(tempfile.mkdtemp())
        try:
            made = _written(_prediction(study, scan, loaded), loaded, folder)
            for tag, file in ((SEGMENTATION, made.segmentation), (UNCERTAINTY, made.entropy)):
                self.datastore.save_result(study, str(file), tag, {"weights": made_by["weights"]})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        facts = {"made_by": made_by, "record": made.record}
        self.datastore.update_image_info(study, {FACTS: facts})  # last: where it stands, the files are whole
        logger.info("predicted a study with weights %s", made_by["weights"])
        stored = self._known(study, made_by)
        if stored is None:
            raise DataError(f"{study}: its results could not be stored. Is the disk full?")
        return stored


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
