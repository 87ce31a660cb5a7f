"""Names of files in a run's folder that one part writes and another reads."""

RECONSTRUCTIONS = "reconstructions.npz"
SAMPLES = "samples.csv"
MODE_COMPARISON = "modes.csv"
INT8 = "int8.csv"
