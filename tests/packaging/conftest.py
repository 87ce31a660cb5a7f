"""medssl as others get it: built, and installed into an environment that knows nothing of this checkout."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Installed:
    """An environment with medssl from its wheel; `root` is the environment's folder."""

    root: Path

    @property
    def package(self) -> Path:
        """The folder of the installed package."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.root)})) / "medssl"

    def run(self, *words: object, cwd: Path) -> str:
        """What a command of the environment, e.g. `medssl bundles`, prints when it is run in `cwd`."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MEDSSL"))}
        program = self.root / "bin" / str(words[0])
        done = subprocess.run(
            [str(program), *map(str, words[1:])],
            cwd=cwd,
            env={**environment, "OMP_NUM_THREADS": "1", "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout


def build(source: Path, target: str, folder: Path) -> Path:
    """Build "wheel" or "sdist" of the source tree into `folder`, by what is installed here: nothing is downloaded."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="package")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the sources."""
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="package")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from nothing but the archive of the sources, as an index would have it."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="package")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A fresh environment with the wheel in it; what medssl depends on is borrowed from the one that runs the tests."""
    environment = Installed(tmp_path_factory.mktemp("environment"))
    venv.create(environment.root, symlinks=True)
    python = environment.root / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    # a path in a .pth file is searched last, and .pth files in there, so also an editable medssl's, are not read
    borrowed = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (environment.package.parent / "borrowed.pth").write_text("\n".join(borrowed))
    return environment
