"""The review queue: which cases, and which of their slices, a human should look at first."""
