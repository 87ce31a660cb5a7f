"""Prediction of many scans: one bad scan does not stop the others, finished ones are skipped, shards share the work."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ignite.engine import Engine
from monai.engines import Evaluator

from medssl.core.errors import ConfigError, DataError, MedsslError, error_behind
from medssl.core.files import FolderLock, write_text_atomically
from medssl.data.dicom_sources import import_highdicom, require_referable
from medssl.data.validate import check_case
from medssl.data.volumes import content_digest, split_address
from medssl.inference.dicom_outputs import dicom_paths, write_dicom
from medssl.inference.outputs import describe, discard, map_paths, read_record, write_maps, write_record
from medssl.inference.predictor import Predictor

logger = logging.getLogger(__name__)


class PredictionEngine(Evaluator):
    """A MONAI evaluator that predicts cases one by one and writes `<id>_seg`, `_prob`, `_entropy` and `<id>.json`.

    A case that fails is recorded in failures.json and the rest goes on. Cases whose record was made from the same scan
    by the same weights and settings are skipped. shard "i/n" (from 1) takes every n-th case, so that n runs into one
    folder give the bytes of one run. with_dicom: scans must be DICOM series, and `<id>_seg`, `_entropy` and `_bands`
    .dcm that refer to them are written too; their voxels are the same in every run, their UIDs are new.
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
        with FolderLock(self.output_dir, f".lock{suffix}"):
            if self.cases:
                super().run(global_epoch)
            failures = self.output_dir / f"failures{suffix}.json"
            if self.failures or failures.exists():
                write_text_atomically(failures, json.dumps(self.failures, indent=1))

    def _iteration(self, engine: Engine, batchdata: dict[str, Any]) -> dict[str, Any]:
        case_id = batchdata["id"]
        try:
            made_by = {**self._settings, "scan": content_digest(batchdata["image"])}
            known = read_record(self.output_dir, case_id) or {}
            current = known.get("made_by") == made_by
            if current and all(path.is_file() for path in self._outputs(case_id)):
                self.skipped.append(case_id)
                return known
            record = self._predict(batchdata, made_by, others_stay=current)
        except (MedsslError, RuntimeError, OSError, ValueError) as error:
            self.failures[case_id] = str(error_behind(error) or error)
            logger.warning("%s failed: %s", case_id, self.failures[case_id])
            return {}
        self.finished.append(case_id)
        logger.info("%s finished (%d of %d)", case_id, engine.state.iteration, len(self.cases))
        return record

    def raise_failures(self) -> None:
        """MedsslError that names the cases that failed, if any did."""
        if self.failures:
            listed = "\n".join(f"{case}: {reason}" for case, reason in self.failures.items())
            raise MedsslError(f"{len(self.failures)} of {len(self.cases)} cases failed:\n{listed}")

    def _predict(self, case: dict[str, Any], made_by: dict[str, Any], others_stay: bool) -> dict[str, Any]:
        """The record of the case, written with its outputs; those not asked for stay if they are of this prediction."""
        series = split_address(case["image"])[0]
        if self.with_dicom:
            require_referable(series)
        errors = [f for f in check_case(_image_only(case)) if f.severity == "error"]
        if errors:
            raise DataError(" ".join(f"{finding.file}: {finding.message}" for finding in errors))
        prediction = self.predictor(case)
        if not others_stay:
            discard(self.output_dir, case["id"])
        if self.with_dicom:
            write_dicom(prediction, series, self.output_dir, self.predictor.structures)
        write_maps(prediction, self.output_dir, self.with_probabilities)
        record = {**describe(prediction, self.predictor.structures), "made_by": made_by}
        write_record(self.output_dir, case["id"], record)
        return record

    def _outputs(self, case_id: str) -> list[Path]:
        maps = map_paths(self.output_dir, case_id, self.with_probabilities)
        return maps + (dicom_paths(self.output_dir, case_id) if self.with_dicom else [])


def parse_shard(shard: str) -> tuple[int, int]:
    """(i, n) of "i/n" with 1 <= i <= n; ConfigError otherwise."""
    first, _, last = str(shard).partition("/")
    if not (first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last)):
        raise ConfigError(f"shard '{shard}': expected i/n with 1 <= i <= n, for example 2/8.")
    return int(first), int(last)


def _image_only(case: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "label"}
