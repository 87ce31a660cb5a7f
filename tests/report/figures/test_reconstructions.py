"""Inputs stand above their reconstructions, the right way up, on one scale of grey."""

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.report import write_report
from medssl.report.figures.files import write_figures
from medssl.report.figures.reconstructions import Reconstructions, load_reconstructions, reconstruction_rows


def write(folder, count=3, **changes):
    """reconstructions.npz with a mark at the patient's right front of every input."""
    inputs = np.full((count, 12, 8), -1, dtype=np.float32)
    inputs[:, -1, -1] = 1
    arrays = {"inputs": inputs, "reconstructions": inputs / 2, "ids": np.array([f"case_{i}" for i in range(count)])}
    np.savez(folder / "reconstructions.npz", **(arrays | changes))


def test_first_row_is_inputs_second_reconstructions_at_most_eight_columns(tmp_path):
    write(tmp_path, count=10)
    panels = reconstruction_rows(load_reconstructions(tmp_path)).axes

    assert len(panels) == 2 * 8
    assert [panels[0].get_ylabel(), panels[8].get_ylabel()] == ["input", "reconstruction"]
    assert [axes.get_title() for axes in panels[:8]] == [f"case_{i}" for i in range(8)]
    for above, below in zip(panels[:8], panels[8:], strict=True):
        assert np.array_equal(above.images[0].get_array() / 2, below.images[0].get_array())
        assert above.images[0].get_clim() == below.images[0].get_clim() == (-1, 1)


def test_right_is_left_and_front_is_up_as_in_the_pictures_of_cases(tmp_path):
    write(tmp_path)
    figure = reconstruction_rows(load_reconstructions(tmp_path))
    picture = figure.axes[0].images[0].get_array()
    box, (width_in, height_in) = figure.axes[0].get_position(), figure.get_size_inches()

    assert picture.shape == (8, 12) and picture[0, 0] == 1 and (picture == 1).sum() == 1
    assert box.height * height_in / (box.width * width_in) == pytest.approx(8 / 12)


def test_long_names_are_shortened_in_the_middle():
    blank = np.zeros((1, 4, 4))
    title = reconstruction_rows(Reconstructions(blank, blank, ["a_very_long_name_of_a_case_17"])).axes[0].get_title()
    assert title.startswith("a_very…") and title.endswith("case_17") and len(title) == 17


def test_report_and_figures_show_them_only_where_they_are(make_run):
    folder = make_run(rows=None)
    assert "Reconstructions" not in write_report(folder).read_text()
    write(folder)
    assert "Reconstructions" in write_report(folder).read_text()
    assert "reconstructions.png" in {path.name for path in write_figures(folder)}


def test_none_where_there_is_no_file_or_nothing_in_it(tmp_path):
    assert load_reconstructions(tmp_path) is None
    write(tmp_path, count=0)
    assert load_reconstructions(tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": np.array(["one"])}, "1 ids do not match"),
        ({"reconstructions": np.zeros((3, 12, 9))}, r"reconstructions \(3, 12, 9\)"),
        ({"ids": np.array(["a", None, 3], dtype=object)}, "damaged"),  # pickled: never loaded
    ],
)
def test_damaged_files_are_errors(tmp_path, changes, message):
    write(tmp_path, **changes)
    with pytest.raises(DataError, match=message):
        load_reconstructions(tmp_path)


def test_a_file_cut_off_is_an_error(tmp_path):
    write(tmp_path)
    file = tmp_path / "reconstructions.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match="damaged"):
        load_reconstructions(tmp_path)
