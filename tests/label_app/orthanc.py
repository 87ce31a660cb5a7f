"""A DICOMweb archive for tests: Debian's Orthanc with its DICOMweb plugin, in a folder of its own."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

PROGRAM = shutil.which("Orthanc", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
PLUGIN = Path("/usr/share/orthanc/plugins/libOrthancDicomWeb.so")
START_SECONDS = 30


def require_orthanc() -> None:
    """Skips the test where Orthanc or its plugin is missing."""
    if PROGRAM is None or not PLUGIN.is_file():
        pytest.skip("no Orthanc with DICOMweb here; `make setup-label` installs it")


@dataclass(frozen=True)
class Orthanc:
    """A running archive at `url`."""

    url: str

    @property
    def dicomweb_url(self) -> str:
        return f"{self.url}/dicom-web"

    def store(self, folder: Path) -> None:
        """Sends every file of the folder."""
        for file in sorted(folder.iterdir()):
            requests.post(f"{self.url}/instances", data=file.read_bytes(), timeout=30).raise_for_status()

    def series(self, modality: str) -> list[str]:
        """UIDs of all series of a modality, in the order of their arrival."""
        query = {"Level": "Series", "Query": {"Modality": modality}, "Expand": True}
        answer = requests.post(f"{self.url}/tools/find", json=query, timeout=30)
        answer.raise_for_status()
        found = sorted(answer.json(), key=lambda series: series["LastUpdate"])
        return [series["MainDicomTags"]["SeriesInstanceUID"] for series in found]

    def remove(self, series_uid: str) -> None:
        """Deletes a series."""
        query = {"Level": "Series", "Query": {"SeriesInstanceUID": series_uid}}
        for series in requests.post(f"{self.url}/tools/find", json=query, timeout=30).json():
            requests.delete(f"{self.url}/series/{series}", timeout=30).raise_for_status()

    def fetch(self, series_uid: str, folder: Path) -> list[Path]:
        """Writes the files of a series into the folder, and returns them."""
        query = {"Level": "Instance", "Query": {"SeriesInstanceUID": series_uid}}
        answer = requests.post(f"{self.url}/tools/find", json=query, timeout=30)
        answer.raise_for_status()
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for instance in answer.json():
            files.append(folder / f"{instance}.dcm")
            files[-1].write_bytes(requests.get(f"{self.url}/instances/{instance}/file", timeout=30).content)
        return files


@contextlib.contextmanager
def running_orthanc(folder: Path) -> Iterator[Orthanc]:
    """Starts an empty archive on a free port, with its files and its log in `folder`, and stops it at the end.

    Orthanc 1.10 cannot be told on which address to listen: it answers loopback, and refuses all others with 401.
    """
    port = free_port()
    settings = {
        "Name": "medssl tests",
        "StorageDirectory": str(folder / "storage"),
        "IndexDirectory": str(folder / "storage"),
        "Plugins": [str(PLUGIN)],
        "HttpPort": port,
        "RemoteAccessAllowed": False,
        "AuthenticationEnabled": False,
        "DicomServerEnabled": False,
        "HttpThreadsCount": 4,
        "DicomWeb": {"Enable": True, "Root": "/dicom-web/", "Host": "127.0.0.1"},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "orthanc.json").write_text(json.dumps(settings, indent=1))
    with (folder / "orthanc.log").open("wb") as log:
        process = subprocess.Popen([str(PROGRAM), str(folder / "orthanc.json")], stdout=log, stderr=log, cwd=folder)
        try:
            yield _answering(Orthanc(f"http://127.0.0.1:{port}"), process, folder / "orthanc.log")
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def free_port() -> int:
    """A port of loopback that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answering(orthanc: Orthanc, process: subprocess.Popen, log: Path) -> Orthanc:
    """The archive once it answers DICOMweb. Fails the test with the end of the log where it does not."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(requests.ConnectionError):
            if requests.get(f"{orthanc.dicomweb_url}/studies", timeout=5).ok:
                return orthanc
        time.sleep(0.1)
    pytest.fail(f"Orthanc did not start (code {process.poll()}): {log.read_text()[-2000:]}")
