"""Names from outside: what may become part of a path."""

import pytest

from medssl.core.errors import DataError
from medssl.label_app.names import checked_name, is_inside, is_name, is_plain_path


@pytest.mark.parametrize("name", ["scan_1", "1.2.840.113619.2", "a", "A-b.C_d", "x" * 64, "...a"])
def test_ids_and_tags_may_be_letters_digits_dots_dashes_underscores(name):
    assert is_name(name) and checked_name(name, "tag") == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "a/b", "../a", "a\\b", "a b", "ä", "x" * 65, "a\n", "a\0", "%2e"]
)
def test_anything_else_is_no_name(name):
    assert not is_name(name)
    with pytest.raises(DataError, match=r"^tag: expected"):
        checked_name(name, "tag")


@pytest.mark.parametrize("path", ["", "app.bundle.js", "studies/1.2.3/series", "frames/1,2", "viewer/dicomweb", "a/"])
def test_paths_of_the_viewer_and_the_archive_are_plain(path):
    assert is_plain_path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("..", "../x", "a/../b", "....//x", "a\\..\\b", "%2e%2e/x", "a/./b", "a\0", "a b"),
        *("/etc/x", "//x", "a//b"),
    ],
)
def test_paths_that_could_lead_elsewhere_are_not(path):
    assert not is_plain_path(path)


def test_links_are_followed_before_a_path_counts_as_inside(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    assert is_inside(tmp_path / "root" / "file", tmp_path / "root")
    assert not is_inside(tmp_path / "root" / "link" / "file", tmp_path / "root")
    assert not is_inside(tmp_path / "root", tmp_path / "root")
