"""How many patch passes each training may have, so that a benchmark ends within a given time."""

import json
from dataclasses import replace
from pathlib import Path

from medssl.benchmark.plan import SUPERVISED, BenchmarkPlan
from medssl.core.errors import ConfigError
from medssl.sweep import train_all

PILOT_PASSES = 200
TRAINING_SHARE = 0.8  # of the time; the rest is for reading, validation and evaluation


def passes_within(plan: BenchmarkPlan, seconds: float, jobs: int = 1) -> int:
    """Patch passes of each training of the plan within `seconds` of wall time, by a short pilot training.

    ConfigError if that is less than the pilot itself had.
    """
    number = len(plan.trainings())
    pilot = replace(plan, methods=[SUPERVISED], passes=PILOT_PASSES, output=plan.output / "pilot")
    training = pilot.trainings()[0]
    train_all([training], trust=False)
    passes = int(TRAINING_SHARE * seconds * jobs / number / seconds_per_pass(training.folder))
    if passes < PILOT_PASSES:
        needed = PILOT_PASSES * number * seconds_per_pass(training.folder) / TRAINING_SHARE / jobs
        raise ConfigError(
            f"budget {seconds:.0f} s: {number} trainings would have {passes} patch passes each. Give at least "
            f"{needed / 60:.0f}min, or fewer methods, labels, seeds or folds."
        )
    return passes


def seconds_per_pass(run: Path) -> float:
    """Seconds of training for each patch pass of a finished run."""
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    seconds = sum(line["seconds"] for line in lines if line["kind"] == "epoch")
    passes = json.loads((run / "run.json").read_text())["patch_passes"]
    return seconds / sum(stage["units"] for stage in passes.values())
