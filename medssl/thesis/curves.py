"""Several runs in one plot: the time of sampling against T, and the classes' uncertainty at several label amounts."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from medssl.report.figures.sample_curves import TIME, SampleRow, mean_curve
from medssl.report.figures.style import MUTED, SLATE, TEAL, make_log, styled
from medssl.report.run import Run

COLOURS = (TEAL, "#b45309", SLATE, "#7c3aed")
MOST_NAMES = 20  # of classes; more would cover each other


@styled
def time_curves(rows: Mapping[str, Sequence[SampleRow]]) -> Figure:
    """Seconds of a prediction against the number T of samples, a line for each method. rows: of samples.csv."""
    figure = Figure(figsize=(5.1, 3.2), layout="constrained")
    axes = figure.subplots()
    ticks = set()
    for number, (name, measured) in enumerate(rows.items()):
        counts, seconds = mean_curve(measured, TIME)
        axes.plot(counts, seconds, "-o", color=COLOURS[number % len(COLOURS)], lw=1.8, ms=5, mew=0, label=name)
        ticks.update(counts.tolist())
    axes.set_xscale("log")
    axes.set_xticks(sorted(ticks), [f"{count:g}" for count in sorted(ticks)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="samples T", ylabel="time (s)")
    make_log(axes)
    axes.legend(loc="best")
    return figure


@styled
def class_uncertainties(runs: Mapping[str, Run]) -> Figure:
    """Accuracy of every class against its mean uncertainty, a colour for each label amount; a line joins a class.

    runs: label amount, as in the legend -> a run on pictures whose evaluation has `classes`.
    """
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    axes = figure.subplots()
    ways: dict[str, list[tuple[float, float]]] = {}
    for number, (name, run) in enumerate(runs.items()):
        classes: dict[str, dict[str, float]] = run.measured["classes"]
        places = {title: (values["mean_uncertainty_nats"], values["accuracy"]) for title, values in classes.items()}
        unsure = [place[0] for place in places.values()]
        accuracy = [place[1] for place in places.values()]
        axes.plot(unsure, accuracy, "o", ms=6, mew=0, color=COLOURS[number % len(COLOURS)], label=name, zorder=3)
        for title, place in places.items():
            ways.setdefault(title, []).append(place)
    for title, places_of_class in ways.items():
        axes.plot(*zip(*places_of_class, strict=True), color=MUTED, lw=0.7, alpha=0.5)
        if len(ways) <= MOST_NAMES:
            axes.annotate(title, places_of_class[-1], (4, 3), textcoords="offset points", fontsize=7, color=MUTED)
    axes.set(xlabel="mean uncertainty (nats)", ylabel="accuracy")
    axes.margins(0.1)
    axes.legend(loc="best")
    return figure
