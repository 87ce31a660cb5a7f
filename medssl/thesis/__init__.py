"""The tables and figures of the thesis: its numbers, the trainings that make them anew, and both side by side."""
