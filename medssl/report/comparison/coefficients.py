"""Runs that differ in a coefficient of the losses, or in the number M of pseudo-label draws (thesis, appendix A)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from medssl.report.runs import Run
from medssl.report.tables import Stat, summarise

# key of train.json -> its symbol in the thesis, for matplotlib, and what it weighs or counts
COEFFICIENTS = {
    "ce_weight": (r"$\lambda_1$", "cross-entropy"),
    "dice_weight": (r"$\lambda_2$", "Dice"),
    "mse_weight": (r"$\lambda_3$", "reconstruction"),
    "kl_weight": (r"$\lambda_4$", "KL"),
    "beta_ce": (r"$\beta_1$", "cross-entropy"),
    "beta_dice": (r"$\beta_2$", "Dice"),
    "pseudo_samples": ("$M$", "draws per pseudo-label"),
}
# keys in which runs may differ and still be the same experiment: names, places, machines
INCIDENTAL = {
    "seed", "title", "bundle_root", "dataset_dir", "output_dir", "runs_dir", "cache", "cache_dir", "first_stage_from",
    "resume", "download", "mlflow", "tracking_uri", "device", "num_workers", "window_batch", "save_interval",
}  # fmt: skip

Setting = dict[str, str | float]


@dataclass(frozen=True)
class Curve:
    """Mean Dice over seeds at each value of one coefficient, by rising value; all else is the same.

    setting: the keys that tell this curve from others of its coefficient, with their values.
    """

    setting: Setting
    points: list[tuple[float, Stat]]


def coefficient_curves(runs: Sequence[Run]) -> dict[str, list[Curve]]:
    """Coefficient -> its curves: runs that differ in this key alone (and in seeds) and give it two or more values."""
    found = {}
    for key in COEFFICIENTS:
        groups: dict[tuple[tuple[str, str | float], ...], dict[float, dict[int, float]]] = {}
        for run in runs:
            setting = _setting(run)
            value = setting.pop(key, "")
            dice = [row.stats["dice"].mean for row in summarise(run.per_case)[-1:]]
            if isinstance(value, float) and dice:
                by_value = groups.setdefault(tuple(sorted(setting.items())), {})
                by_value.setdefault(value, {})[int(run.facts["seed"])] = dice[0]
        varied = {setting: by_value for setting, by_value in groups.items() if len(by_value) > 1}
        if varied:
            settings = _told_apart([dict(setting) for setting in varied])
            found[key] = [
                Curve(setting, [(value, Stat.of(by_value[value].values())) for value in sorted(by_value)])
                for setting, by_value in zip(settings, varied.values(), strict=True)
            ]
    return found


def named_by_coefficients(runs: Sequence[Run]) -> list[Run]:
    """The runs, with the coefficients in their method's name where it would else stand for different ones.

    Of runs of the same method, data set and labelled cases, those whose value of a coefficient is not the most common
    one become 'GBDL, kl_weight 0.5'. Tables then give each its own row.
    """
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        facts = run.facts
        groups.setdefault((facts["method"], facts["dataset"], facts["labelled"], run.paper_crop), []).append(run)
    usual = {
        id(run): {
            key: Counter(_coefficients(run).get(key) for run in group).most_common(1)[0][0] for key in COEFFICIENTS
        }
        for group in groups.values()
        for run in group
    }
    return [_named(run, usual[id(run)]) for run in runs]


def _named(run: Run, usual: Mapping[str, float | None]) -> Run:
    unusual = [f"{key} {value:g}" for key, value in _coefficients(run).items() if value != usual[key]]
    return replace(run, facts={**run.facts, "method": ", ".join([str(run.facts["method"]), *unusual])})


def _coefficients(run: Run) -> dict[str, float]:
    setting = _setting(run)
    return {key: value for key in COEFFICIENTS if isinstance(value := setting.get(key), float)}


def _setting(run: Run) -> Setting:
    """All that makes the run's experiment: its configuration with numbers as numbers, and its data."""
    config = {key: _number_or_text(text) for key, text in (run.facts.get("config") or {}).items()}
    facts: Setting = {"dataset_name": str(run.facts["dataset"]), "labelled": float(run.facts["labelled"])}
    kept = {key: value for key, value in config.items() if key not in INCIDENTAL}
    return {**kept, **facts, "paper_crop": str(run.paper_crop)}


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
