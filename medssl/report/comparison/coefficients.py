"""Runs that differ in a coefficient of their method, such as the weight of a loss (thesis, appendix A)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from medssl.methods.facts import Coefficient
from medssl.report.run import Run
from medssl.report.tables import Stat, summarise

ALWAYS_INCIDENTAL = {"seed", "title"}
# of runs that did not store which of their keys name places and machines: runs may differ in them and be the same
# experiment all the same
PLACES_OF_RUNS_MADE_BEFORE = {
    "bundle_root", "dataset_dir", "output_dir", "runs_dir", "cache", "cache_dir", "first_stage_from", "resume",
    "download", "mlflow", "tracking_uri", "device", "num_workers", "window_batch", "save_interval",
}  # fmt: skip
GIVEN_OPTIONS = "options::"  # an option of a method is a key of its own, or stands among `options`

Setting = dict[str, str | float]


@dataclass(frozen=True)
class Curve:
    """Mean Dice (or the main metric of another task) over seeds at each value of one coefficient, by rising value.

    All else is the same. setting: the keys that tell this curve from others of its coefficient, with their values.
    """

    coefficient: Coefficient
    setting: Setting
    points: list[tuple[float, Stat]]


def coefficient_curves(runs: Sequence[Run]) -> dict[str, list[Curve]]:
    """Coefficient -> its curves: runs that differ in this key alone (and in seeds) and give it two or more values."""
    ordered = sorted(runs, key=lambda run: run.place_in_tables)
    names = dict.fromkeys(name for run in ordered for name in run.method_facts.coefficients)
    curves = {name: _curves_of(name, runs) for name in names}
    return {name: own_curves for name, own_curves in curves.items() if own_curves}


def named_by_coefficients(runs: Sequence[Run]) -> list[Run]:
    """The runs, with the coefficients in their method's name where it would else stand for different ones.

    Of runs of the same method, data set and labelled cases, those whose value of a coefficient is not the most common
    one become 'GBDL, kl_weight 0.5'. Tables then give each its own row.
    """
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(_row_key(run), []).append(run)
    usual = {key: _most_common(group) for key, group in groups.items()}
    return [_named(run, usual[_row_key(run)]) for run in runs]


def _curves_of(name: str, runs: Sequence[Run]) -> list[Curve]:
    """The curves of one coefficient, in the order of the runs."""
    groups: dict[tuple[tuple[str, str | float], ...], dict[float, dict[int, float]]] = {}
    coefficients: dict[tuple[tuple[str, str | float], ...], Coefficient] = {}
    for run in runs:
        if name not in run.method_facts.coefficients or not run.per_case:
            continue
        setting = _setting(run)
        value = setting.pop(name, "")
        if isinstance(value, float):
            key = tuple(sorted(setting.items()))
            groups.setdefault(key, {}).setdefault(value, {})[int(run.facts["seed"])] = _main_value(run)
            coefficients.setdefault(key, run.method_facts.coefficients[name])
    varied = [key for key, by_value in groups.items() if len(by_value) > 1]
    settings = _told_apart([dict(key) for key in varied])
    return [
        Curve(coefficients[key], setting, _points(groups[key])) for key, setting in zip(varied, settings, strict=True)
    ]


def _main_value(run: Run) -> float:
    """Dice, or the main metric of another task."""
    metric = run.task.main
    mean = summarise(run.per_case, [metric])[-1].stats[metric.name].mean
    return float(run.measured.get(metric.name, mean))


def _points(by_value: Mapping[float, Mapping[int, float]]) -> list[tuple[float, Stat]]:
    return [(value, Stat.of(by_value[value].values())) for value in sorted(by_value)]


def _row_key(run: Run) -> tuple[object, ...]:
    """What runs of one row of a table share."""
    return run.method, run.facts["dataset"], run.facts["labelled"], run.paper_crop


def _most_common(runs: Sequence[Run]) -> dict[str, float | None]:
    """Coefficient -> the value that most of the runs have; None where most have none."""
    settings = [_coefficients(run) for run in runs]
    usual = {}
    for name in dict.fromkeys(name for values in settings for name in values):
        counted = Counter(values.get(name) for values in settings)
        [(usual[name], _)] = counted.most_common(1)
    return usual


def _named(run: Run, usual: Mapping[str, float | None]) -> Run:
    unusual = [f"{name} {value:g}" for name, value in _coefficients(run).items() if value != usual[name]]
    if not unusual:
        return run
    # the facts go with it: a run made before has none, and is known by the title that it loses here
    named = {"method": ", ".join([run.method, *unusual]), "method_facts": run.method_facts.to_json()}
    return replace(run, facts={**run.facts, **named})


def _coefficients(run: Run) -> dict[str, float]:
    """The run's values of its method's coefficients."""
    setting = _setting(run)
    values = {name: setting.get(name) for name in run.method_facts.coefficients}
    return {name: value for name, value in values.items() if isinstance(value, float)}


def _setting(run: Run) -> Setting:
    """All that makes the run's experiment: its configuration with numbers as numbers, and its data."""
    stored = run.facts.get("config") or {}
    config = {key.removeprefix(GIVEN_OPTIONS): _number_or_text(text) for key, text in stored.items()}
    config |= {name: _number_or_text(value) for name, value in (run.facts.get("method_options") or {}).items()}
    facts: Setting = {"dataset_name": str(run.facts["dataset"]), "labelled": float(run.facts["labelled"])}
    incidental = _incidental_keys(run)
    kept = {key: value for key, value in config.items() if key not in incidental}
    return {**kept, **facts, "paper_crop": str(run.paper_crop)}


def _incidental_keys(run: Run) -> set[str]:
    """The keys in which runs may differ and still be the same experiment: names, places, machines."""
    stored = run.facts.get("keys")
    places = PLACES_OF_RUNS_MADE_BEFORE if stored is None else stored.get("place", ())
    return ALWAYS_INCIDENTAL.union(places)


def _number_or_text(text: object) -> str | float:
    try:
        number = float(str(text))
    except ValueError:
        return str(text)
    return number if math.isfinite(number) else str(text)


def _told_apart(settings: Sequence[Setting]) -> list[Setting]:
    """Of each setting the keys in which not all of them agree."""
    keys = dict.fromkeys(key for setting in settings for key in setting)
    differing = [key for key in keys if len({setting.get(key) for setting in settings}) > 1]
    return [{key: setting[key] for key in differing if key in setting} for setting in settings]
