"""A radiologist corrects in OHIF: runs the model, opens its proposal with the brush, exports, and the server has it.

Screenshots of what is seen are kept in tests/artefacts.
"""

from pathlib import Path

import numpy as np
import pytest
from dicomweb_client import DICOMwebClient
from label_app.archive_server import same_grid
from label_app.browser import headless_chromium, require_chromium
from pydicom import dcmread

from medssl.data.dicom_seg import open_segmentation, read_segmentation
from medssl.data.volumes import read_volume
from medssl.data.voxel_grid import reordered

pytestmark = pytest.mark.slow
ARTEFACTS = Path(__file__).parents[1] / "artefacts"


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    require_chromium()
    with headless_chromium(tmp_path_factory.mktemp("chromium")) as viewer:
        yield viewer


@pytest.fixture(scope="module", params=[0, 1], ids=["axial", "coronal"])
def study(proposing_server, request):
    return list(proposing_server.studies.values())[request.param]


@pytest.fixture(scope="module")
def proposal(window, proposing_server, study, tmp_path_factory):
    """The file that the archive has once the model was run in OHIF; all segmentations are removed at the end."""
    orthanc = proposing_server.orthanc
    assert orthanc.series("SEG") == []
    window.open_study(proposing_server.server.url, study.uid)
    window.run(window.connect()[0])
    (series,) = orthanc.series("SEG")
    (file,) = orthanc.fetch(series, tmp_path_factory.mktemp("proposal"))
    yield file
    for series in orthanc.series("SEG"):
        orthanc.remove(series)


@pytest.fixture(scope="module")
def exported(window, proposing_server, study, proposal, tmp_path_factory):
    """The file that the archive has, too, after one stroke of the brush and a click on Export DICOM SEG."""
    window.open_in_segmentation_mode(proposing_server.server.url, study.uid)
    window.load_segmentation("kidney")
    assert window.painted() == np.count_nonzero(read_segmentation(proposal).array)
    window.paint()
    painted = window.painted()
    notice = window.export("Proposal of medssl")
    window.screenshot(ARTEFACTS / f"ohif_exported_{'coronal' if study.label.shape[2] == 64 else 'axial'}.png")
    assert notice == "The archive has it."
    _, series = proposing_server.orthanc.series("SEG")
    (file,) = proposing_server.orthanc.fetch(series, tmp_path_factory.mktemp("exported"))
    assert np.count_nonzero(read_segmentation(file).array) == painted
    return file


def kinds(file):
    return [(item.SegmentLabel, item.SegmentAlgorithmType) for item in dcmread(file).SegmentSequence]


def reviews(server):
    return server.server.get("/info/").json()["datastore"]["completed"]


def test_what_the_model_has_found_is_proposed_once_and_is_no_review(proposing_server, study, proposal, tmp_path):
    shown = proposing_server.segmentation(study.series_uid, proposing_server.model, tmp_path)
    found = read_segmentation(proposal)
    assert kinds(proposal) == [("kidney", "AUTOMATIC")] and same_grid(reordered(found, shown), shown)
    assert np.array_equal(reordered(found, shown).array, shown.array)
    assert len(proposing_server.orthanc.series("SEG")) == 1 and reviews(proposing_server) == 0


def test_what_ohif_exports_is_marked_as_manual_and_counts_as_a_review(proposing_server, study, exported):
    assert kinds(exported) == [("kidney", "MANUAL")]
    assert reviews(proposing_server) == 1
    assert proposing_server.next_sample() != study.series_uid


def test_the_label_that_is_learnt_from_is_the_proposal_with_the_stroke(
    proposing_server, study, proposal, exported, tmp_path
):
    import medssl.label_app.shim.sitecustomize  # noqa: F401
    from medssl.label_app.archive import ArchiveDatastore
    from medssl.label_app.submitted import placed

    client = DICOMwebClient(proposing_server.orthanc.dicomweb_url)
    store = ArchiveDatastore(client, {"Modality": "CT"}, tmp_path, dict(open_segmentation(proposal).structures))
    assert list(store.reviewed()) == [study.series_uid]
    label = read_volume(store.reviewed()[study.series_uid])
    parts = (reordered(read_segmentation(file), label) for file in (proposal, exported))
    proposed, drawn = (placed(part, label).array > 0 for part in parts)
    assert np.array_equal(label.array > 0, drawn)
    assert (drawn & ~proposed).sum() > 50 and not (proposed & ~drawn).any()
