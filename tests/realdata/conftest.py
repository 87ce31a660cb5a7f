"""Shared by the tests on real scans."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(shared_data: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of real data that a test asks for by name; the test is skipped where it is missing."""
    path = shared_data / request.param
    if not path.is_dir():
        pytest.skip(f"{path} is not there")
    return path
