"""report.html of a run: one file that needs no network and no script."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from medssl.core.files import write_text_atomically
from medssl.metrics.catalogue import LATENT_SHARE
from medssl.report.comparison.compare import PAPER_CROP_NOTICE
from medssl.report.figures.pictures import picture
from medssl.report.figures.training import training_curves
from medssl.report.run import Run
from medssl.report.runs import load_run
from medssl.report.scrub import command_without_paths, without_paths
from medssl.report.templating import render
from medssl.uncertainty.latent_share import LEAST_LATENT_SHARE

STATUS_NOTICES = {
    "running": "This run had not finished when the report was written: it shows what was there.",
    "first stage finished": "Only the first stage is trained. To go on: run second_stage with --resume true.",
    "failed": "This run failed: the report shows what was there.",
}
LONGEST_VALUE = 300


def write_report(run_folder: str | Path) -> Path:
    """Writes report.html into the run folder, whole or not at all, and returns its path. Raises DataError."""
    run = load_run(run_folder)
    path = run.folder / "report.html"
    write_text_atomically(path, render(run.task.template, **shared_content(run), **run.task.content(run)))
    return path


def shared_content(run: Run) -> dict[str, Any]:
    """What the page of every run shows: what it is, how it was trained and made."""
    facts = run.facts
    title = f"{facts['dataset']}, {facts['method']}, {facts['labelled']} labelled, seed {facts['seed']}"
    return {
        "title": title,
        "head": {
            "name": facts["name"],
            "title": title,
            "status": run.status,
            "facts": _status_facts(run),
            "notices": _notices(run),
        },
        "no_scores": no_scores_text(run),
        "curves": picture(training_curves, run) if run.history else None,
        "training": _training_text(run),
        "validated": run.task.validated.axis_title,
        "made": {
            "command": command_without_paths(str(facts.get("command", "")), run.folder),
            "facts": _making(run),
            "settings": [(_plain_name(key), _value_text(value, run)) for key, value in run.settings.items()],
            "config": [(key, _value_text(value, run)) for key, value in sorted((facts.get("config") or {}).items())],
        },
    }


def no_scores_text(run: Run) -> str:
    """Why a run without evaluated cases has none."""
    if run.facts.get("test") != 0:
        return "This run has no evaluation yet."
    return (
        f"There were no {run.task.cases} to evaluate: the split has no test part, so there are no scores. To get some, "
        "label more or give --test a number from 1 on, and train again."
    )


def _status_facts(run: Run) -> list[str]:
    facts = run.facts
    roles = ("labelled", "unlabelled", "validation", "test")
    counts = ", ".join(f"{facts[role]} {role}" for role in roles if facts.get(role) is not None)
    started, finished = _time(facts.get("started")), _time(facts.get("finished"))
    when = f"started {started:%Y-%m-%d %H:%M}" if started else ""
    if started and finished and (started.tzinfo is None) == (finished.tzinfo is None):
        when += f", took {_duration((finished - started).total_seconds())}"
    size = f"{facts['parameters']:,} parameters" if isinstance(facts.get("parameters"), int) else ""
    return [part for part in (when, f"{counts} {run.task.cases}", size) if part]


def _notices(run: Run) -> list[str]:
    notices = [PAPER_CROP_NOTICE] if run.paper_crop else []
    notices += latent_notices(run)
    if run.status in STATUS_NOTICES:
        notices.append(STATUS_NOTICES[run.status])
    return notices


def latent_notices(run: Run) -> list[str]:
    """A warning, where the latent of a neural process hardly reaches the output."""
    share = run.measured.get(LATENT_SHARE.name)
    if not isinstance(share, float) or not share < LEAST_LATENT_SHARE:
        return []
    return [
        f"The latent hardly reaches the output: the mutual information of its draws is {100 * share:.2g} % of the "
        f"entropy, and below {100 * LEAST_LATENT_SHARE:g} % draws are as good as one. So the uncertainty is that of "
        "one pass; the number of samples, the divergence of the latents and the memory banks change next to nothing."
    ]


def _training_text(run: Run) -> str:
    epochs, steps = run.records("epoch"), run.records("step")
    parts = []
    if epochs:
        seconds = sum(record.get("seconds") or 0.0 for record in epochs)
        parts.append(f"{len(epochs)} epochs in {_duration(seconds)}")
    last = (steps or epochs)[-1:]
    parts += [f"{record['step']} steps" for record in last if "step" in record]
    parts += [f"last loss {record['loss']:.4g}" for record in last if isinstance(record.get("loss"), int | float)]
    return f"{', '.join(parts)}." if parts else ""


def _making(run: Run) -> list[tuple[str, str]]:
    """Names and values of what somebody needs to make the run again."""
    names = {
        "split_hash": "Split",
        "seed": "Seed",
        "git_sha": "Git commit",
        "medssl_version": "medssl",
        "bundle": "Bundle",
        "mlflow_run_id": "MLflow run",
        "tracking_uri": "MLflow store",
    }
    return [(title, _value_text(run.facts[key], run)) for key, title in names.items() if run.facts.get(key) is not None]


def _plain_name(key: str) -> str:
    """'pavpu_window' -> 'Evaluation pavpu window'."""
    return f"Evaluation {key.replace('_', ' ')}"


def _value_text(value: Any, run: Run) -> str:
    """A value as text without machine paths, shortened where it is very long."""
    clean = "none" if value in ([], {}, None) else without_paths(value, run.folder)
    text = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None


def _duration(seconds: float) -> str:
    """'42 s', '12 min' or '3 h 05 min'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
