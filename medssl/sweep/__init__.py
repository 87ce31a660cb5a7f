"""A grid of trainings, one process each: resumable, finished runs are skipped, then all are compared."""

from medssl.sweep.grid import Sweep, sweep_of_bundle, sweeps_of_file
from medssl.sweep.training import SweepRow, Training, train_all

__all__ = ["Sweep", "SweepRow", "Training", "sweep_of_bundle", "sweeps_of_file", "train_all"]
