"""What the thesis prints, read from thesis.json: tables, figures, numbers, settings, methods and data sets."""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.options import unknown_name

FILE = Path(__file__).with_name("thesis.json")
_PRINTED = re.compile(r"(?P<mean>[\d.]+)(?: ± (?P<sd>[\d.]+))?")


@dataclass(frozen=True)
class Number:
    """A number as printed. why_impossible: what arithmetic says against it; empty where nothing does."""

    text: str
    why_impossible: str = ""

    @property
    def mean(self) -> float:
        return float(self._parts["mean"])

    @property
    def sd(self) -> float:
        """The standard deviation, NaN where none is printed."""
        return float(self._parts["sd"] or math.nan)

    @property
    def _parts(self) -> re.Match[str]:
        match = _PRINTED.fullmatch(self.text)
        if match is None:
            raise ConfigError(f"{FILE}: '{self.text}' is no number. Expected such as '0.911 ± 0.010'.")
        return match


@dataclass(frozen=True)
class Setting:
    """How many labels of which data set. text: as the thesis writes it. keys: what a training needs besides."""

    name: str
    dataset: str
    labelled: int | float
    unlabelled: int | float
    text: str
    keys: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ThesisMethod:
    """What a row trains: a bundle and its keys. supervised: without unlabelled cases. step: what its steps cost."""

    name: str
    bundle: str
    keys: dict[str, Any]
    step: str
    supervised: bool = False


@dataclass(frozen=True)
class Dataset:
    """folder: its name below the folder of all data. get: where it is from. stand_ins: what --bench takes without it.

    bench: keys, and numbers of labels that others are replaced by, for trainings of bench size.
    """

    name: str
    title: str
    folder: str
    get: str
    known_as: str
    epochs: int | None = None
    stand_ins: tuple[str, ...] = ()
    bench: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A row of a table, or a curve of a figure. method: the name of a ThesisMethod, None of a number only quoted."""

    name: str
    method: str | None
    note: str = ""
    numbers: dict[str, tuple[Number, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A table or a figure. kind: table, figure, configuration or drawing; only the first two need trainings.

    against: the method that differences are taken to. differs: what is not as in the thesis. details: what only some
    entries have, such as the values of T of a figure.
    """

    number: str
    kind: str
    title: str
    compares: str
    seeds: int = 0
    settings: tuple[Setting, ...] = ()
    metrics: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    percent: bool = False
    against: str | None = None
    differs: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def has_runs(self) -> bool:
        return self.kind in ("table", "figure")

    @property
    def label(self) -> str:
        """'Table 3.1' or 'Figure 3.2'."""
        is_figure = self.number.startswith("fig")
        return f"Figure {self.number.removeprefix('fig')}" if is_figure else f"Table {self.number}"

    @property
    def impossible(self) -> list[tuple[Row, str, Number]]:
        """The printed numbers that cannot be, with their row and setting."""
        return [
            (row, setting, number)
            for row in self.rows
            for setting, numbers in row.numbers.items()
            for number in numbers
            if number.why_impossible
        ]

    def cells(self) -> list[tuple[Row, Setting]]:
        """Every row with every setting that the thesis has it in; of a figure all."""
        pairs = [(row, setting) for setting in self.settings for row in self.rows]
        return [(row, setting) for row, setting in pairs if self.kind == "figure" or setting.name in row.numbers]


@dataclass(frozen=True)
class Thesis:
    """All of it. costs: of training steps, and where they are from."""

    entries: dict[str, Entry]
    settings: dict[str, Setting]
    methods: dict[str, ThesisMethod]
    datasets: dict[str, Dataset]
    costs: dict[str, Any]

    def entry(self, number: str) -> Entry:
        """The table '3.1' or the figure 'fig3.2'; ConfigError with the nearest there is."""
        plain = number.lower().replace(" ", "").replace("figure", "fig").removeprefix("table")
        known = {name.lower(): entry for name, entry in self.entries.items()}
        if plain not in known:
            text = unknown_name(number, self.entries, "table or figure")
            raise ConfigError(f"{text} Tables are such as 3.1, figures such as fig3.2; 'medssl reproduce' lists all.")
        return known[plain]


@cache
def read_thesis() -> Thesis:
    """The content of thesis.json."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    settings = {name: Setting(name, **facts) for name, facts in stored["settings"].items()}
    entries = {
        number: _entry(number, facts, settings, stored["chapters"]) for number, facts in stored["entries"].items()
    }
    methods = {name: ThesisMethod(name, **facts) for name, facts in stored["methods"].items()}
    datasets = {name: _dataset(name, facts) for name, facts in stored["datasets"].items()}
    return Thesis(entries, settings, methods, datasets, stored["costs"])


def _dataset(name: str, facts: dict[str, Any]) -> Dataset:
    own = {key: value for key, value in facts.items() if key not in ("name", "stand_ins")}
    return Dataset(name, known_as=facts.get("name", name), stand_ins=tuple(facts["stand_ins"]), **own)


def _entry(number: str, facts: dict[str, Any], settings: dict[str, Setting], chapters: dict[str, list[str]]) -> Entry:
    plain = ("kind", "title", "compares", "seeds", "percent", "against")
    listed = ("settings", "metrics", "rows", "differs", "impossible")
    doubts = {(doubt["row"], doubt["setting"], doubt["metric"]): doubt["why"] for doubt in facts.get("impossible", [])}
    metrics = tuple(facts.get("metrics", ()))
    chapter = number.removeprefix("fig").partition(".")[0]
    return Entry(
        number,
        **{key: facts[key] for key in plain if key in facts},
        settings=tuple(settings[name] for name in facts.get("settings", ())),
        metrics=metrics,
        rows=tuple(_row(row, metrics, doubts) for row in facts.get("rows", ())),
        differs=(*facts.get("differs", ()), *(chapters[chapter] if facts.get("rows") else ())),
        details={key: value for key, value in facts.items() if key not in plain + listed},
    )


def _row(facts: dict[str, Any], metrics: Iterable[str], doubts: dict[tuple[str, str, str], str]) -> Row:
    numbers = {
        setting: tuple(
            Number(text, doubts.get((facts["name"], setting, metric), ""))
            for text, metric in zip(texts, metrics, strict=True)
        )
        for setting, texts in facts.get("numbers", {}).items()
    }
    return Row(facts["name"], facts["method"], facts.get("note", ""), numbers)
