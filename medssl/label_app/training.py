"""Correct, submit, train: the served model is trained on what was reviewed, and replaced if that did not make it worse.

It is judged by the mean Dice on cases held out: reviewed studies whose labels no training here is given and, where the
served model's own run is still there, its validation cases. Scans of the former may have been among the unlabelled ones
of an earlier training, or among the cases of that run; that favours the served model, so that it is kept rather longer.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.train import TrainTask

from medssl.core.errors import ConfigError, DataError, MedsslError
from medssl.core.files import FolderLock, write_text_atomically
from medssl.data.layouts import find_folder
from medssl.inference.evaluation import Evaluation
from medssl.inference.predictor import load_predictor
from medssl.label_app.datastore import StudyDatastore
from medssl.label_app.model import ServedModel
from medssl.label_app.recipe import TrainingRecipe
from medssl.label_app.training_cases import HELD_OUT, LABELLED, UNLABELLED, run_examples, study_examples, write_cases
from medssl.report.runs import load_run

logger = logging.getLogger(__name__)


class ReviewTraining(TrainTask):
    """Runs the bundle's `training` on the reviewed labels and the unlabelled rest, beginning with the served weights.

    request: `max_epochs`, if other than in the model's own run. Every training has a folder in the workspace, with
    outcome.json; all are tracked in its mlflow.db. A training that fails leaves the served model as it is.
    """

    def __init__(self, model: ServedModel, recipe: TrainingRecipe, seed: int = 0) -> None:
        super().__init__("Train on the reviewed labels and the unlabelled rest; served if not worse on cases held out")
        self.model, self.recipe, self.seed = model, recipe, seed

    def stats(self) -> dict[str, Any]:
        """The outcome of the last training, {} before the first."""
        outcomes = sorted(self.model.workspace.trainings.glob("*/outcome.json"))
        return json.loads(outcomes[-1].read_text()) if outcomes else {}

    def __call__(self, request: dict[str, Any], datastore: Datastore) -> dict[str, Any]:
        """Train, compare, perhaps swap; the outcome. Raises what went wrong after noting it."""
        if not isinstance(datastore, StudyDatastore):
            raise ConfigError(
                f"{type(datastore).__name__}: a store of studies that tells no reviewed labels, expected a "
                "StudyDatastore. Start the server with 'medssl label'."
            )
        trainings = self.model.workspace.trainings
        with FolderLock(trainings):
            number = 1 + max((int(path.name) for path in trainings.iterdir() if path.name.isdigit()), default=0)
            folder = trainings / f"{number:04d}"
            folder.mkdir()
            started, outcome = time.time(), dict[str, Any](training=folder.name, status="failed")
            try:
                self._train(folder, _epochs(request), datastore, outcome)
            except MedsslError as error:
                outcome["reason"] = str(error)
                raise
            finally:
                outcome["total_time"] = round(time.time() - started, 1)
                write_text_atomically(folder / "outcome.json", json.dumps(outcome, indent=1))
            return outcome

    def _train(self, folder: Path, epochs: int | None, datastore: StudyDatastore, outcome: dict[str, Any]) -> None:
        served = self.model.bundle
        facts = json.loads((self.model.given / "configs" / "inference.json").read_text())["data_facts"]
        label_map = {int(source): number for source, number in facts["label_map"].items()}
        studies = study_examples(datastore, self.model.workspace.root / "held_out.json", self.seed)
        outcome["left_out_segmentations"] = datastore.left_out()
        if not any(example.role == LABELLED for example in studies):
            raise DataError("no reviewed study to train on. Submit labels first, of at least two patients.")
        run = run_examples(self.recipe.run, label_map, studies)
        ids = write_cases([*studies, *run], self.model.structures, folder / "data")
        ids_of_run = {example.id for example in run}
        validation = [name for name in ids[HELD_OUT] if name in ids_of_run]
        reviewed = [name for name in ids[HELD_OUT] if name not in ids_of_run]
        outcome["held_out"] = {"reviewed": reviewed, "validation_cases_of_the_run": validation}
        outcome["left_out_as_empty"] = ids["empty"]
        outcome["trained_on"] = {"labelled": len(ids[LABELLED]), "unlabelled": len(ids[UNLABELLED])}
        overlay = self.recipe.overlay(
            facts,
            served / "models" / "model.pt",
            dataset_name="folder",
            dataset_dir=str(folder / "data"),
            lists_dir=str(folder / "data"),
            labelled=len(ids[LABELLED]),
            validation=0,
            output_dir=str(folder / "run"),
            runs_dir=str(folder.parent),
            **({} if epochs is None else {"max_epochs": epochs}),
        )
        run_training(self.recipe.configs, overlay, folder)
        trained = load_run(folder / "run")
        outcome["mlflow"] = {key: trained.facts.get(key) for key in ("tracking_uri", "mlflow_run_id")}
        outcome["dice_after"] = mean_dice(trained.per_case)
        outcome["dice_before"] = mean_dice(evaluate(served, facts, ids[HELD_OUT], folder, self.model.trust))
        better = is_not_worse(outcome["dice_before"], outcome["dice_after"])
        if better:
            self.model.swap(folder / "run" / "bundle")
        outcome["status"] = "swapped" if better else "kept"


def run_training(bundle_configs: Sequence[Path], overlay: Mapping[str, Any], folder: Path) -> None:
    """`monai.bundle run training` of the bundle with the overlay; MedsslError with its last line if it fails."""
    write_text_atomically(folder / "overlay.json", json.dumps(overlay, indent=1))
    configs = [str(file) for file in (*bundle_configs, folder / "overlay.json")]
    command = [sys.executable, "-m", "monai.bundle", "run", "training", "--config_file", str(configs)]
    environment = {key: value for key, value in os.environ.items() if key not in ("MASTER_ADDR", "MASTER_PORT")}
    with (folder / "training.log").open("w") as log:
        done = subprocess.run(  # noqa: S603  (our own interpreter and configs)
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, check=False
        )
    if done.returncode != 0:
        lines = (folder / "training.log").read_text().strip().splitlines()
        raise MedsslError(f"the training failed: {lines[-1] if lines else 'it said nothing'}")


def evaluate(
    bundle: Path, facts: dict[str, Any], held_out: Sequence[str], folder: Path, trust: bool = False
) -> list[dict[str, Any]]:
    """Scores of `bundle` on the cases held out, whose labels are classes already, by case and structure."""
    same = {str(number): number for number in facts["label_map"].values()}
    predictor = load_predictor(bundle, trust=trust, data_facts={**facts, "label_map": same})
    cases = [case for case in find_folder(folder / "data") if case["id"] in held_out]
    with (folder / "training.log").open("a") as log, contextlib.redirect_stdout(log):
        return Evaluation(predictor, cases, folder / "before").run()


def mean_dice(rows: Sequence[Mapping[str, Any]]) -> float:
    """Mean over cases and structures; DataError if there are none."""
    if not rows:
        raise DataError("the training left no evaluation of the cases held out.")
    return round(float(np.mean([float(row["dice"]) for row in rows])), 6)


def is_not_worse(before: float, after: float) -> bool:
    """Whether the new model may be served; never if its Dice is not a number."""
    return bool(np.isfinite(after)) and after >= before


def _epochs(request: Mapping[str, Any]) -> int | None:
    asked = request.get("max_epochs")
    if asked is None:
        return None
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= 100_000:
        raise DataError("max_epochs: expected a whole number above 0.")
    return asked
