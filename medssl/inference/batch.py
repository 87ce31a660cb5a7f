"""Prediction of many scans: one bad scan does not stop the others, finished ones are skipped, shards share the work."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ignite.engine import Engine
from monai.engines import Evaluator

from medssl.core.errors import ConfigError, DataError, DiskFullError, MedsslError, error_behind
from medssl.core.files import FolderLock, write_text_atomically, written_together
from medssl.core.prediction_options import parse_shard
from medssl.core.progress import work
from medssl.data.dicom_sources import import_highdicom, require_series
from medssl.data.validate import check_case
from medssl.data.volumes import content_digest, split_address
from medssl.inference.dicom_outputs import dicom_paths, write_dicom
from medssl.inference.outputs import describe, discard, map_paths, read_maps, read_record, write_map_files, write_record
from medssl.inference.predictor import Predictor

logger = logging.getLogger(__name__)


class PredictionEngine(Evaluator):
    """A MONAI evaluator that predicts cases one by one and writes `<id>_seg`, `_prob`, `_entropy` and `<id>.json`.

    A case that fails is recorded in failures.json and the rest goes on. Its files appear together or not at all. Cases
    whose record was made from the same scan by the same weights and settings are skipped. shard "i/n" (from 1) takes
    every n-th case, so that n runs into one folder give the bytes of one run. with_dicom: scans must be DICOM series,
    and `<id>_seg`, `_entropy` and `_bands` .dcm that refer to them are written too, from the maps; their voxels are the
    same in every run, their UIDs are new. A series that they cannot refer to has its maps, and is a failure.
    """

    def __init__(
        self,
        predictor: Predictor,
        cases: Sequence[dict[str, Any]],
        output_dir: str | Path,
        shard: str = "1/1",
        with_probabilities: bool = True,
        with_dicom: bool = False,
    ) -> None:
        self.index, self.of = parse_shard(shard)
        if with_dicom:
            import_highdicom()  # to be told of its lack before the first scan
        scans, folder = [split_address(case["image"])[0].resolve() for case in cases], Path(output_dir).resolve()
        if any(folder == scan.parent or folder.is_relative_to(scan) for scan in scans):
            raise ConfigError(
                f"{output_dir}: holds the scans, or lies in one. Write the predictions to another folder."
            )
        chosen = sorted(cases, key=lambda case: case["id"])[self.index - 1 :: self.of]
        super().__init__(device=predictor.device, val_data_loader=chosen, decollate=False)
        self.predictor, self.cases, self.output_dir = predictor, chosen, Path(output_dir)
        self.with_probabilities, self.with_dicom = with_probabilities, with_dicom
        self.failures: dict[str, str] = {}
        self.finished: list[str] = []
        self.skipped: list[str] = []

    def run(self, global_epoch: int = 1) -> None:  # type: ignore[override]
        """Predict all cases of the shard; afterwards `failures`, `finished` and `skipped` say what became of them."""
        suffix = "" if self.of == 1 else f"-{self.index}-of-{self.of}"
        self._settings = self.predictor.settings()
        self._failures_file = self.output_dir / f"failures{suffix}.json"
        with FolderLock(self.output_dir, f".lock{suffix}"):
            with work("prediction", len(self.cases), "scans") as self._progress:
                if self.cases:
                    super().run(global_epoch)
            self._write_failures()

    def _iteration(self, engine: Engine, batchdata: dict[str, Any]) -> dict[str, Any]:
        case_id = batchdata["id"]
        try:
            record, is_new = self._with_outputs(batchdata)
        except (MedsslError, RuntimeError, OSError, ValueError) as error:
            self.failures[case_id] = str(error_behind(error) or error)
            self._write_failures()
            # the reason is told once: at the end, with those of all others
            logger.warning("%s failed (%d of %d)", case_id, engine.state.iteration, len(self.cases))
            if isinstance(error_behind(error), DiskFullError):
                engine.terminate()  # the others would be predicted for nothing
            return {}
        finally:
            self._progress.advance()
        if is_new:
            self.finished.append(case_id)
            logger.info("%s finished (%d of %d)", case_id, engine.state.iteration, len(self.cases))
        else:
            self.skipped.append(case_id)
        return record

    def _with_outputs(self, case: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The record of the case, whose outputs are all there now, and whether any of them had to be made."""
        case_id, is_new = case["id"], False
        made_by = {**self._settings, "scan": content_digest(case["image"])}
        record = read_record(self.output_dir, case_id) or {}
        is_current = record.get("made_by") == made_by
        maps = map_paths(self.output_dir, case_id, self.with_probabilities)
        series = split_address(case["image"])[0]
        if self.with_dicom:
            require_series(series)
        if not is_current or not all(path.is_file() for path in maps):
            record, is_new = self._predict(case, made_by, others_stay=is_current), True
        if self.with_dicom and not all(path.is_file() for path in dicom_paths(self.output_dir, case_id)):
            self._write_dicom(case_id, series)
            is_new = True
        return record, is_new

    def _write_dicom(self, case_id: str, series: Path) -> None:
        """Write the DICOM files of the case from its maps; DataError where they cannot refer to its series."""
        stored = read_maps(self.output_dir, case_id, self.predictor.pipeline.facts.num_classes)
        try:
            write_dicom(stored, series, self.output_dir, self.predictor.structures)
        except DataError as error:
            raise DataError(f"{error} The .nii.gz maps of {case_id} are written, its DICOM files are not.") from error

    def _write_failures(self) -> None:
        """Keep failures.json as it is now; a full disk has its own text already."""
        try:
            if self.failures or self._failures_file.exists():
                write_text_atomically(self._failures_file, json.dumps(self.failures, indent=1))
        except OSError as error:
            logger.warning("%s: could not be written (%s).", self._failures_file, error)

    @property
    def untried(self) -> int:
        """How many cases were left when the disk was full."""
        return len(self.cases) - len(self.finished) - len(self.skipped) - len(self.failures)

    def raise_failures(self) -> None:
        """MedsslError that names the cases that failed, if any did."""
        if self.failures:
            listed = "\n".join(f"{case}: {reason}" for case, reason in self.failures.items())
            raise MedsslError(f"{len(self.failures)} of {len(self.cases)} cases failed:\n{listed}")

    def _predict(self, case: dict[str, Any], made_by: dict[str, Any], others_stay: bool) -> dict[str, Any]:
        """The record of the case, written with its outputs; those not asked for stay if they are of this prediction."""
        errors = [f for f in check_case(_image_only(case)) if f.severity == "error"]
        if errors:
            raise DataError(" ".join(f"{finding.file}: {finding.message}" for finding in errors))
        prediction = self.predictor(case)
        record = {**describe(prediction, self.predictor.structures), "made_by": made_by}
        with written_together(self.output_dir, case["id"]) as staging:
            write_map_files(prediction, staging, self.with_probabilities)
            write_record(staging, case["id"], record)
            if not others_stay:
                discard(self.output_dir, case["id"])
        return record


def _image_only(case: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "label"}
