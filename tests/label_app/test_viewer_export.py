"""OHIF's file with the command behind "Export DICOM SEG", as it is served; test_ohif_correction.py clicks on it."""

from difflib import ndiff
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import monailabel

from medssl.label_app.viewer_export import export_routes, with_export

OHIF = Path(monailabel.__file__).parent / "endpoints" / "static" / "ohif"
SOURCE = "dataSource = extensionManager.getActiveDataSource()[0]"


@pytest.fixture(scope="module")
def exporting():
    """The one file of the OHIF that is installed here that stores segmentations."""
    (file,) = (file for file in OHIF.glob("*.bundle.*.js") if b"storeSegmentation: async ({" in file.read_bytes())
    return file


def served(folder):
    app = FastAPI()
    app.include_router(export_routes(folder))
    return TestClient(app)


def test_the_file_is_served_with_slices_in_order_a_data_source_and_a_notice_and_else_unchanged(exporting):
    answer = served(OHIF).get(f"/ohif/{exporting.name}")
    assert answer.headers["content-type"].startswith("text/javascript")
    changes = list(ndiff(exporting.read_text().splitlines(), answer.text.splitlines()))
    removed, added = ([line[2:].strip() for line in changes if line.startswith(sign)] for sign in "-+")
    assert removed == ["dataSource", "await dataSource.store.dicom(naturalizedReport);"]
    assert SOURCE in added and removed[1] in added and len(added) == 16


def test_no_other_file_is_served(exporting):
    other = next(file for file in OHIF.glob("*.bundle.*.js") if file != exporting)
    assert served(OHIF).get(f"/ohif/{other.name}").status_code == 404


@pytest.mark.parametrize("change", [lambda text: text + text, lambda text: text.replace(b"dataSource", b"source")])
def test_a_file_that_is_not_as_expected_is_left_alone_and_the_log_says_so(exporting, change, tmp_path, caplog):
    (tmp_path / exporting.name).write_bytes(change(exporting.read_bytes()))
    assert with_export(change(exporting.read_bytes())) is None
    assert served(tmp_path).get(f"/ohif/{exporting.name}").status_code == 404
    assert caplog.text.count("Export DICOM SEG is not available") == 1
