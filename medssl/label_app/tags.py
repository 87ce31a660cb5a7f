"""The tags of labels: who may store what under which."""

from collections.abc import Mapping
from typing import Any

from medssl.core.errors import DataError
from medssl.label_app.names import checked_name

FINAL = "final"  # what a person submits: a review
SEGMENTATION, UNCERTAINTY, OUTGROWN = "original", "uncertainty", "outgrown"
_OWN = {SEGMENTATION, UNCERTAINTY, OUTGROWN}


def tag_of_others(label_tag: Any) -> str:
    """The tag of a label that is not the server's own; DataError if it is one of these, or no name."""
    tag = _name(label_tag)
    if tag in _OWN:
        raise DataError(f"tag '{tag}': its labels are the server's own. Choose another tag, or '{FINAL}' for a review.")
    return tag


def tag_of_prediction(request: Mapping[str, Any]) -> str | None:
    """The tag that a request wants a prediction stored under as well; None if it is the one all are stored under.

    DataError for the server's own tags, and for `final`: a prediction is no review.
    """
    if not request.get("save_label") or _name(request.get("label_tag") or SEGMENTATION) == SEGMENTATION:
        return None
    tag = tag_of_others(request["label_tag"])
    if tag == FINAL:
        raise DataError(f"label_tag '{FINAL}': a prediction is no review. Choose another tag, or submit the label.")
    return tag


def _name(label_tag: Any) -> str:
    return checked_name(str(getattr(label_tag, "value", label_tag)), "tag of the label")
