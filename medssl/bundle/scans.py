"""What the configurations of bundles for scans call: the beginning of a training, its session and its method."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from medssl.bundle.evaluation import InferenceOptions
from medssl.bundle.gbdl import FirstStageOptions
from medssl.bundle.keys import check_keys, given_by_name
from medssl.bundle.scan_data import ScanData, ScanDataOptions
from medssl.bundle.session import Session, SessionOptions, default_run_name
from medssl.bundle.stage import ScanSchedule, StageOptions
from medssl.core.errors import ConfigError
from medssl.core.options import make_options, marked, names_of
from medssl.core.seeding import be_deterministic
from medssl.engine.explaining import explain_errors
from medssl.inference.export import require_bundle
from medssl.methods.method import Method
from medssl.methods.registry import find_method

PARTS = (ScanDataOptions, SessionOptions, StageOptions, InferenceOptions)
# keys that configurations read themselves; where they say a place, they mean nothing to another run
PLACES_IN_JSON = ("bundle_root", "device", "start_from")
OTHERS_IN_JSON = ("network_def", "learning_rate", "channels_last", "method", "options", "variant")


def begin(bundle_root: str | Path, seed: int, method: str = "gbdl", backend: str = "eager") -> None:
    """Before anything is built: errors are explained, keys are checked, everything is seeded."""
    explain_errors()
    require_bundle(bundle_root, backend)
    options = find_method(method).Options
    check_keys(bundle_root, [*names_of(*PARTS, FirstStageOptions, options), *PLACES_IN_JSON, *OTHERS_IN_JSON])
    be_deterministic(seed)


def scan_session(
    bundle: str,
    method: Any,
    data: ScanData,
    network: nn.Module,
    device: torch.device | str,
    variant: str = "",
    **listed: Any,
) -> Session:
    """The session of a training on scans. variant: named in the run's folder where it is not the bundle's name."""
    asked = data.options
    name = default_run_name(bundle, asked.dataset_name, asked.labelled, asked.seed, variant)
    parts = (*PARTS, FirstStageOptions)
    incidental = [key for part in parts for key in marked(part, "incidental")]
    keys = {"data": names_of(ScanDataOptions), "place": [*incidental, *PLACES_IN_JSON]}
    return Session(
        bundle, method, data.pipeline, data.split, network, device, asked.seed, run_name=name, keys=keys, **listed
    )


def scan_method(
    name: str, network: nn.Module, loss: nn.Module, schedule: ScanSchedule, options: dict[str, Any] | None = None
) -> Method:
    """The method called `name` on a network, with the options that the user's command has for it.

    options: the same, from a configuration. Raises ConfigError for an option that the method does not have.
    """
    kind = find_method(name)
    if kind.bundle:
        raise ConfigError(f"method '{name}': it is trained by the bundle {kind.bundle}, run its train.json.")
    given = {**given_by_name(names_of(kind.Options)), **(options or {})}
    return kind(network, loss, make_options(kind.Options, given), schedule.whole)


def own_keys() -> set[str]:
    """The keys that say on what data, and where, a run is trained: those of another training are its own."""
    carried = {"seed", "cache"}  # which data they mean does not depend on the run
    places = {key for part in (*PARTS, FirstStageOptions) for key in marked(part, "place")}
    return (set(names_of(ScanDataOptions)) - carried) | places | set(PLACES_IN_JSON)
