"""Int8 graphs of a finished run, and what they lose: stored beside its weights, case by case in RUN/int8.csv."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medssl.core.csv_files import write_rows
from medssl.core.errors import ConfigError
from medssl.core.progress import tracked, work
from medssl.core.run_files import INT8
from medssl.core.run_folder import read_facts
from medssl.data.split import Split, read_split, require_scans
from medssl.inference.backends.int8 import StoredGraphs, int8_folder, read_models, write_models, write_record
from medssl.inference.backends.one_window import require_parts
from medssl.inference.backends.openvino import OpenVINOBackend, import_openvino
from medssl.inference.comparison import SCORES, ComparedCase, case_rows, mean_scores
from medssl.inference.evaluation import evaluation_folder
from medssl.inference.int8_calibration import calibration_windows, import_nncf, quantised_models
from medssl.inference.mc_dropout import MCDropoutInferer
from medssl.inference.predictor import Predictor, bundle_root, load_predictor, parse_bundle

KIND = "backend"
CALIBRATION_ROLES = ("labelled", "unlabelled")  # the training side of a split; the others stay unseen


def quantise_run(
    run: str | Path,
    samples: int | None = None,
    stride: Sequence[int] | None = None,
    limit: int | None = None,
    windows: int = 32,
    *,
    trust: bool = False,
) -> tuple[StoredGraphs, list[ComparedCase]]:
    """Make int8 graphs of a finished run's network, measure what they lose, and store both; the rows are RUN/int8.csv.

    windows: of training scans, to calibrate. The loss is measured on the first `limit` (None: all) validation cases,
    or the test cases where there are none (`role` in the record says which), by `exact` in float32 and in int8 with
    the same dropout masks. trust: as in `load_predictor`. Raises ConfigError for a run without such cases or
    with another kind of network.
    """
    with work("opening the network"):
        config = parse_bundle(run, trust=trust)  # refused before anything takes long
        import_nncf()
        require_parts(config.get_parsed_content("network_def"))
    split = read_split(Path(run) / "split.json")
    role, cases = measured_cases(split, limit)
    if not cases:
        raise ConfigError(
            f"{run}: no validation or test cases to measure the loss on. Train with --validation above 0."
        )
    require_scans(Path(run) / "split.json", cases)
    settings = {"samples": samples, "stride": stride, "paper_crop": read_facts(run)["paper_crop"]}
    with work("opening the network"):
        float32 = load_predictor(run, mode="exact", backend="eager", device="cpu", trust=trust, **settings)
    training = [case for name in CALIBRATION_ROLES for case in split.role(name)]
    inferer = _sampling_by_dropout(float32)
    # predictions look at whole slices, whatever this run's evaluation looked at
    seen = calibration_windows(training, replace(float32.pipeline, paper_crop=False), inferer.window, windows)
    folder = int8_folder(bundle_root(run) / "models")
    with work(f"calibrating int8 graphs with {len(seen)} windows"):
        files = write_models(*quantised_models(float32.network, seen), folder)
    sides = {"eager": float32, "int8": _with_graphs(float32, folder)}
    rows: list[ComparedCase] = []
    for case in tracked(cases, "loss of int8", "cases"):
        rows += case_rows(KIND, sides, case, evaluation_folder(run, role))
    write_rows(Path(run) / INT8, ("case", KIND, *SCORES), rows)
    record = {
        "weights": float32.weights_digest(),
        "window": list(inferer.window),
        "files": files,
        "calibration": {"windows": len(seen), "scans": min(len(seen), len(training)), "roles": CALIBRATION_ROLES},
        "made_with": _versions(),
        "measured": {"role": role, "cases": len(cases), **_chosen(inferer), **_means(rows)},
    }
    graphs = StoredGraphs(folder, record)
    write_record(graphs)
    return graphs, rows


def measured_cases(split: Split, limit: int | None) -> tuple[str, list[dict[str, Any]]]:
    """The role and the cases that the loss is measured on: test cases are left alone if there are others."""
    role = "validation" if split.role("validation") else "test"
    return role, split.role(role)[:limit]


def _with_graphs(float32: Predictor, folder: Path) -> Predictor:
    """The same predictor by the graphs in `folder`, before they have a record."""
    inferer = copy.copy(_sampling_by_dropout(float32))
    inferer.backend = "int8"
    inferer.use(OpenVINOBackend(float32.network, *read_models(folder)), float32.network)
    return Predictor(float32.network, float32.pipeline, inferer, float32.device, seed=float32.seed)


def _sampling_by_dropout(predictor: Predictor) -> MCDropoutInferer:
    """The predictor's inferer; ConfigError unless it is one that int8 graphs can serve."""
    if not isinstance(predictor.inferer, MCDropoutInferer):
        raise ConfigError(
            f"int8 graphs serve MCDropoutInferer, this bundle predicts by {type(predictor.inferer).__name__}. "
            "Predict with it as it is."
        )
    return predictor.inferer


def _chosen(inferer: MCDropoutInferer) -> dict[str, Any]:
    return {name: inferer.settings()[name] for name in ("samples", "stride", "mode")}


def _means(rows: Sequence[ComparedCase]) -> dict[str, float]:
    return {**mean_scores(KIND, rows, "int8"), "seconds_float32": mean_scores(KIND, rows, "eager")["seconds"]}


def _versions() -> dict[str, str]:
    openvino = import_openvino()
    processor = openvino.Core().get_property("CPU", "FULL_DEVICE_NAME")
    return {"openvino": openvino.__version__, "nncf": import_nncf().__version__, "processor": processor}
