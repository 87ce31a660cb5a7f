"""Pictures worth a look: those the network is least sure of, and those it is sure of and wrong."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from medssl.report.figures.style import INK, MUTED, PAGE_WIDTH_IN, TEAL, styled
from medssl.report.run import PerCaseRow, Run
from natural_image_ext.data.splits import read_image_split

SHOWN = 8
LONGEST_NAME = 12


@styled
def telling_pictures(run: Run) -> Figure:
    """Two rows of test pictures. Raises DataError where the data set is not what it was."""
    pictures = read_image_split(run.folder / "split.json").test
    places = {picture: place for place, picture in enumerate(pictures.ids)}
    figure = Figure(figsize=(PAGE_WIDTH_IN, 3.6), layout="constrained")
    for axes, (title, rows) in zip(figure.subplots(2, SHOWN), telling_rows(run.per_case).items(), strict=True):
        axes[0].set_ylabel(title, color=INK)
        for place, cell in enumerate(axes):
            cell.set(xticks=[], yticks=[])
            cell.spines[:].set_visible(False)
            if place < len(rows):
                cell.imshow(pictures.read(places[rows[place]["case"]]).permute(1, 2, 0).numpy())
                _caption(cell, rows[place])
    return figure


def telling_rows(rows: Sequence[PerCaseRow]) -> dict[str, list[PerCaseRow]]:
    """Rows of per_sample.csv: the most uncertain ones, and the mistakes with the least uncertainty."""
    order = sorted(rows, key=lambda row: (row["uncertainty_nats"], row["case"]))
    mistakes = [row for row in order if row["error"]]
    return {"least sure": order[::-1][:SHOWN], "surest mistakes": mistakes[:SHOWN]}


def _caption(axes: Axes, row: PerCaseRow) -> None:
    wrong = f"\nnot {row['predicted'][:LONGEST_NAME]}" if row["error"] else "\n"
    axes.set_title(row["label"][:LONGEST_NAME] + wrong, fontsize=8, color=INK if row["error"] else TEAL)
    axes.set_xlabel(f"{row['uncertainty_nats']:.2f} nats", fontsize=8, color=MUTED)
