"""Figures of runs: charts of cases and trainings, the thesis' figures, pictures of slices."""
