"""Does the queue help? A reviewer who knows the labels works through it, within cases and over rounds of training."""

from medssl.review.simulation.discovery import Curve, case_curves, discovery_curve
from medssl.review.simulation.inspection import Inspection, inspect_runs
from medssl.review.simulation.rounds import Rounds

__all__ = ["Curve", "Inspection", "Rounds", "case_curves", "discovery_curve", "inspect_runs"]
