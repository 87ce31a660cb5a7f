"""What all bundles for scans share: what their configurations call first, and which keys are a run's own."""

from pathlib import Path

from medssl.bundle.gbdl import GBDLTraining
from medssl.bundle.keys import begin
from medssl.bundle.scan_data import ScanDataOptions
from medssl.bundle.training import PLACES_IN_JSON, ScanTraining
from medssl.core.errors import ConfigError
from medssl.core.options import marked, names_of
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


def own_keys() -> set[str]:
    """The keys that say on what data, and where, a run is trained: those of another training are its own."""
    carried = {"seed", "cache"}  # they mean the same on any data
    places = {key for part in GBDLTraining.parts for key in marked(part, "place")}
    return (set(names_of(ScanDataOptions)) - carried) | places | set(PLACES_IN_JSON)
