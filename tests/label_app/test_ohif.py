"""A radiologist's way through OHIF: opens a study, connects, runs the models, sees segments, goes on to the next.

Screenshots of what is seen are kept in tests/artefacts.
"""

from pathlib import Path

import numpy as np
import pytest
from label_app.browser import headless_chromium, require_chromium
from pydicom import dcmread

from medssl.data.dicom_seg import read_segmentation
from medssl.data.volumes import read_volume
from medssl.data.voxel_grid import reordered
from medssl.label_app.submitted import placed
from medssl.uncertainty.ranking import BANDS

ARTEFACTS = Path(__file__).parents[1] / "artefacts"


@pytest.fixture(scope="module", params=[0, 1], ids=["axial", "coronal"])
def study(archive_server, request):
    return list(archive_server.studies.values())[request.param]


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    require_chromium()
    with headless_chromium(tmp_path_factory.mktemp("chromium")) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def viewer(window, archive_server, study):
    """OHIF with the study open."""
    window.open_study(archive_server.server.url, study.uid)
    return window


@pytest.fixture(scope="module")
def models(viewer):
    """Those that OHIF offers once it is connected."""
    return viewer.connect()


def shown_as(viewer, names):
    """The label map in the viewer, with the ids of `names` (id to name) instead of the viewer's own."""
    shown, numbers = viewer.labels(), viewer.segments()
    ids = np.zeros(max(numbers.values()) + 1, np.uint8)
    for label_id, name in names.items():
        ids[numbers[name]] = label_id
    assert set(np.unique(shown)) <= {0, *(numbers[name] for name in names.values())}
    return ids[shown]


def fullest_slices(labels):
    """Along each axis the slice with the most labelled voxels."""
    return [(labels > 0).sum(axis=tuple({0, 1, 2} - {axis})).argmax() for axis in range(3)]


def test_the_scan_is_shown_voxel_for_voxel(viewer, study):
    assert np.array_equal(viewer.scan(), read_volume(study.folder).array)


def test_no_other_patients_study_is_listed_with_it(viewer):
    assert viewer.listed_studies() == 1


def test_connecting_offers_the_structures_and_the_uncertainty(models, viewer, archive_server):
    assert viewer.address() == f"{archive_server.server.url}/"
    assert models == [archive_server.model, f"{archive_server.model}_uncertainty"]
    assert set(viewer.segments()) == {"kidney", *BANDS.values()}
    assert not any(viewer.coloured_pixels())


@pytest.mark.parametrize("kind", ["structures", "uncertainty"])
def test_a_model_that_is_run_is_seen_as_segments_voxel_for_voxel(
    kind, viewer, models, archive_server, study, tmp_path, request
):
    model, names = (models[0], {1: "kidney"}) if kind == "structures" else (models[1], BANDS)
    viewer.run(model)
    expected = archive_server.segmentation(study.series_uid, model, tmp_path)
    assert expected.array.any()
    assert np.array_equal(shown_as(viewer, names), expected.array)
    viewer.go_to(fullest_slices(study.label.array))
    viewer.wait_until(lambda: min(viewer.coloured_pixels()) > 50, "colours in all planes")
    viewer.screenshot(ARTEFACTS / f"ohif_{request.node.callspec.id}.png")


def test_next_sample_opens_the_study_that_needs_a_review_most(viewer, models, archive_server):
    archive_server.wait_for_scores()
    offered = archive_server.studies[archive_server.next_sample()]
    assert viewer.next_sample("uncertain") == offered.uid
    assert np.array_equal(viewer.scan(), read_volume(offered.folder).array)


def test_what_is_drawn_in_the_segmentation_mode_and_stored_in_the_archive_is_a_review(window, archive_server, tmp_path):
    drawn = list(archive_server.studies.values())[2]
    window.open_in_segmentation_mode(archive_server.server.url, drawn.uid)
    window.add_segmentation("kidney")
    window.paint()
    file = window.download("Segmentation 1", tmp_path)
    window.screenshot(ARTEFACTS / "ohif_drawn.png")
    label = placed(reordered(read_segmentation(file), drawn.label), drawn.label).array
    assert np.count_nonzero(label) == np.count_nonzero(label[..., 0]) == window.painted() > 50
    orthanc, server = archive_server.orthanc, archive_server.server
    orthanc.store(tmp_path)
    try:
        assert server.get("/info/").json()["datastore"]["completed"] == 1
        assert archive_server.next_sample() != drawn.series_uid
    finally:  # the studies are shared with other tests
        orthanc.remove(str(dcmread(file).SeriesInstanceUID))
