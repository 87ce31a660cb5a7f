"""What the configurations of bundles for scans call before anything is built."""

from pathlib import Path

from medssl.bundle.gbdl import GBDLTraining
from medssl.bundle.keys import begin
from medssl.bundle.training import ScanTraining
from medssl.core.errors import ConfigError
from medssl.core.options import names_of
from medssl.methods.registry import find_method


def begin_scans(bundle_root: str | Path, seed: int, method: str) -> None:
    """The beginning of a training on scans by a method of one stage."""
    kind = find_method(method)
    if kind.bundle:
        raise ConfigError(
            f"method '{method}': it is trained by the bundle {kind.bundle}. Run that bundle's train.json."
        )
    options = kind.Options
    shared = sorted(set(names_of(options)) & set(names_of(*ScanTraining.parts)))
    if shared:
        raise ConfigError(f"method '{method}': its option '{shared[0]}' is a key of the bundle. Give it another name.")
    begin(bundle_root, seed, (*ScanTraining.parts, options))


def begin_gbdl(bundle_root: str | Path, seed: int) -> None:
    """The beginning of a training by GBDL."""
    begin(bundle_root, seed, (*GBDLTraining.parts, find_method("gbdl").Options))
