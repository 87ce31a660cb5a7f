"""Where the cases of a queue come from: a finished run, scans that are predicted now, or scans predicted before."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError, DataError
from medssl.core.progress import work
from medssl.data.layouts import scans_in
from medssl.data.volumes import content_digest, split_address
from medssl.inference.batch import PredictionEngine
from medssl.inference.outputs import read_record
from medssl.inference.predictor import load_predictor
from medssl.report.run import Run
from medssl.report.runs import load_run


@dataclass(frozen=True)
class ReviewCase:
    """A predicted case: its scan's address, None where that is not there, and the folder of its maps."""

    id: str
    image: str | None
    folder: Path


@dataclass(frozen=True)
class Source:
    """The cases of a queue. failures: case -> why it has no prediction.

    structures: class number -> name, None where only the records of the cases name them. window: lowest and highest
    intensity to be shown, None where the scans tell.
    """

    name: str
    cases: Sequence[ReviewCase]
    failures: Mapping[str, str] = field(default_factory=dict)
    structures: Mapping[int, str] | None = None
    window: Sequence[float] | None = None


def open_source(
    path: str | Path,
    bundle: str | Path | None = None,
    predictions: str | Path | None = None,
    predict_into: str | Path = "predictions",
    samples: int | None = None,
    trust: bool = False,
) -> Source:
    """The run at `path`; or the scans at `path`, predicted now by `bundle`, or before, into `predictions`.

    trust: as in `load_predictor`. Raises ConfigError where it is not clear which of these is meant.
    """
    if samples is not None and not bundle:
        raise ConfigError("--samples: for predicting scans now. Give the bundle that predicts with --bundle, too.")
    if (Path(path) / "run.json").is_file():
        if bundle or predictions:
            raise ConfigError(
                f"{path}: a run, whose own predictions are reviewed. Give --bundle or --predictions with scans only."
            )
        return source_of_run(path)
    if bundle and predictions:
        raise ConfigError("--bundle predicts the scans now, --predictions takes what was predicted: give one of them.")
    if bundle:
        return source_by_predicting(path, bundle, predict_into, samples, trust)
    if predictions:
        return source_of_predictions(path, predictions)
    raise ConfigError(
        f"{path}: not a run (no run.json). For scans give --bundle to predict them, or --predictions with the folder "
        "that 'medssl predict' wrote."
    )


def source_of_run(folder: str | Path, scans: str | Path | None = None) -> Source:
    """The evaluated cases of a run; `scans` says where their scans lie if not where the run found them.

    Raises ConfigError for a run of pictures, DataError where nothing was evaluated.
    """
    run = load_run(folder)
    if not run.task.of_scans:
        raise ConfigError(f"{folder}: a run on {run.task.cases}. The queue is for scans with slices to look at.")
    predictions = run.folder / "evaluation" / "predictions"
    stored = {file.name.removesuffix("_seg.nii.gz") for file in predictions.glob("*_seg.nii.gz")}
    ids = sorted(stored | {row["case"] for row in run.per_case})
    if not ids:
        way_out = "It has no test cases: give scans and --bundle." if run.status == "finished" else "Let it finish."
        raise DataError(f"{folder}: the run has no evaluated cases (status: {run.status}). {way_out}")
    images = {case["id"]: case["image"] for case in scans_in(scans)} if scans else _images_of(run)
    cases = [ReviewCase(case, _existing(images.get(case)), predictions) for case in ids]
    return Source(str(run.facts["name"]), cases, {}, run.structures, run.facts.get("window"))


def source_by_predicting(
    scans: str | Path, bundle: str | Path, predictions: str | Path, samples: int | None = None, trust: bool = False
) -> Source:
    """The scans, predicted by a trained bundle into `predictions`; finished ones are not predicted again."""
    with work("opening the network"):
        predictor = load_predictor(bundle, trust=trust, samples=samples, device=str(local_device()))
    listed = scans_in(scans)
    engine = PredictionEngine(predictor, listed, predictions, with_probabilities=False)
    engine.run()
    cases = [
        ReviewCase(case["id"], case["image"], Path(predictions)) for case in listed if case["id"] not in engine.failures
    ]
    return Source(_name(scans), cases, engine.failures, predictor.structures, predictor.pipeline.facts.window)


def source_of_predictions(scans: str | Path, predictions: str | Path) -> Source:
    """The scans with what `medssl predict` wrote into a folder, or what a run predicted of them.

    A scan without its prediction, or with one of another scan of its name, is a failure. Raises DataError where no scan
    has a prediction.
    """
    folder = Path(predictions)
    if (folder / "run.json").is_file():
        return source_of_run(folder, scans)
    listed = scans_in(scans)
    known = _known_failures(folder)
    failures = {case["id"]: reason for case in listed if (reason := _problem(case, folder, known))}
    if len(failures) == len(listed) and not known:
        raise DataError(
            f"{folder}: a finished prediction of none of the {len(listed)} scans in {scans} "
            f"(first: {failures[listed[0]['id']]}). Give the folder that 'medssl predict' wrote."
        )
    cases = [ReviewCase(case["id"], case["image"], folder) for case in listed if case["id"] not in failures]
    return Source(_name(scans), cases, failures)


def _images_of(run: Run) -> dict[str, str]:
    """Case -> address of its scan, where it is now."""
    return {case["id"]: run.located(case["image"]) for case in run.split.get("cases", [])}


def _existing(address: str | None) -> str | None:
    return address if address and split_address(address)[0].exists() else None


def _known_failures(folder: Path) -> dict[str, str]:
    """What the failures.json of all shards say."""
    known: dict[str, str] = {}
    for file in sorted(folder.glob("failures*.json")):
        try:
            known |= json.loads(file.read_text())
        except (ValueError, TypeError) as error:
            raise DataError(f"{file}: not the JSON of failures ({error}). Remove it, or predict again.") from error
    return known


def _problem(case: Mapping[str, str], folder: Path, known: Mapping[str, str]) -> str:
    """Why a scan has no prediction in the folder that can be trusted; empty if it has."""
    try:
        record = read_record(folder, case["id"])
    except ValueError:
        return f"{case['id']}.json: not JSON. Remove it and run 'medssl predict' again."
    if record is None:
        return known.get(case["id"], f"{case['id']}: not predicted yet. Run 'medssl predict'.")
    digest = record.get("made_by", {}).get("scan")
    if digest is not None and digest != content_digest(case["image"]):
        return f"{case['id']}: its prediction was made from another scan of that name. Run 'medssl predict' again."
    return ""


def _name(scans: str | Path) -> str:
    return Path(scans).resolve().name
