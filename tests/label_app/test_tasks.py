"""Work on demand: one bad study does not stop the others."""

import pytest

from medssl.core.errors import DataError

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app.tasks import BatchPrediction, UncertaintyScoring


class Studies:
    """Three studies, of which `b` cannot be predicted."""

    def __init__(self):
        self.datastore, self.done, self.failed = self, [], []

    def refresh(self):
        pass

    def list_images(self):
        return ["c", "b", "a"]

    get_unlabeled_images = list_images

    def record(self, study):
        return {"id": study} if study in self.done else None

    def failure(self, study):
        return "bad scan" if study in self.failed else None

    def result(self, study):
        if study == "b":
            self.failed.append(study)
            raise DataError("bad scan")
        self.done.append(study)


def test_scoring_on_demand_scores_all_and_counts_failures():
    assert UncertaintyScoring(Studies())({}, None) == {"scored": 2, "failed": 1}


def test_batch_prediction_names_what_failed_and_leaves_no_files(tmp_path):
    studies = Studies()

    def infer(request):
        studies.result(request["image"])
        (tmp_path / request["image"]).write_bytes(b"x")
        return {"file": str(tmp_path / request["image"]), "params": {"id": request["image"]}}

    found = BatchPrediction()({"model": "m", "images": "all"}, studies, infer)
    assert found == {"a": {"id": "a"}, "b": {"failure": "bad scan"}, "c": {"id": "c"}}
    assert not list(tmp_path.iterdir())
