"""All mask metrics of one case and one class: the row of the per-case table."""

from collections.abc import Sequence

from medssl.metrics.inputs import Values, boolean_pair
from medssl.metrics.overlap import dice, jaccard
from medssl.metrics.surface import surface_measures


def evaluate_masks(prediction: Values, label: Values, spacing_mm: Sequence[float] | Values) -> dict[str, float]:
    """Dice, Jaccard, and HD95, ASD, ASSD in mm, under the keys dice, jaccard, hd95, asd, assd.

    prediction, label: numpy arrays or torch tensors of equal shape, booleans or 0 and 1. spacing_mm: one per axis.
    Both masks empty: 1 and 0 mm; one empty: 0 and the image's diagonal. Raises DataError where shapes differ, values
    are not 0 and 1, or the spacing has the wrong length or is not above 0.
    """
    predicted, reference = boolean_pair(prediction, label)
    distances = surface_measures(predicted, reference, spacing_mm)
    return {"dice": dice(predicted, reference), "jaccard": jaccard(predicted, reference), **distances._asdict()}
