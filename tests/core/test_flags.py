"""Texts from the command line mean what they say: "false" is not true."""

import pytest

from medssl.core.errors import ConfigError
from medssl.core.flags import flag


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("False", False),
        ("false", False),
        ("yes", True),
        ("0", False),
        ("on", True),
        ("OFF", False),
    ],
)
def test_texts_are_read_as_flags(value, expected):
    assert flag(value, "resume") is expected


@pytest.mark.parametrize("value", ["maybe", "", None, 2])
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ConfigError, match="resume"):
        flag(value, "resume")
