"""A label server on an archive of three studies, and the model that it serves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from label_app.dicom_studies import Study
from label_app.orthanc import Orthanc

from medssl.data.volumes import read_volume
from medssl.data.voxel_grid import Volume

# enough to find kidneys on phantoms, most of them at least
TRAINING = {"network_def#widths": [4, 8, 16], "learning_rate": 0.02, "batch_size": 1, "labelled": 6, "validation": 1}
TRAINING |= {"max_epochs": 1, "steps_per_epoch": 80}
STUDIES = {20: {}, 21: {"coronal": True}, 22: {}}  # phantoms that the model has not seen


@dataclass(frozen=True, eq=False)
class Archive:
    """`studies`: those in the archive, by the UID of their series; `run`: the training of the model for them."""

    orthanc: Orthanc
    studies: dict[str, Study]
    run: Path


@dataclass(frozen=True, eq=False)
class ArchiveServer:
    """`server`: of tests/label_app/conftest.py; `model`: the name of the model that it serves."""

    server: Any
    archive: Archive
    model: str
    workspace: Path

    @property
    def orthanc(self) -> Orthanc:
        return self.archive.orthanc

    @property
    def studies(self) -> dict[str, Study]:
        return self.archive.studies

    def next_sample(self) -> str:
        """The series that is offered for review."""
        return self._offered()["id"]

    def wait_for_scores(self) -> None:
        """Until every study has one, what is offered may change."""
        self.server.wait_until(lambda: self._offered()["unscored"] == 0, "scores of all studies")

    def segmentation(self, series_uid: str, model: str, folder: Path) -> Volume:
        """What the model answers for a series, as a file in `folder`."""
        answer = self.server.post(f"/infer/{model}", params={"image": series_uid, "output": "image"})
        assert answer.status_code == 200, answer.text
        (folder / "answer.nii.gz").write_bytes(answer.content)
        return read_volume(folder / "answer.nii.gz")

    def _offered(self) -> dict[str, Any]:
        answer = self.server.post("/activelearning/uncertain", json={})
        assert answer.status_code == 200, answer.text
        return answer.json()


def same_grid(one: Volume, other: Volume) -> bool:
    """Whether both have the same shape and, to a thousandth of a millimetre, the same affine."""
    return one.shape == other.shape and np.allclose(one.affine, other.affine, atol=1e-3)
