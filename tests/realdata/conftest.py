"""Real scans: from MEDSSL_DATA, or ../shared/data beside the repository; the tests are skipped without them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data; see its README.md."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("MEDSSL_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set MEDSSL_DATA")
    return folder
