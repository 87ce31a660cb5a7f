"""What every other part stands on: errors, files, flags, tables on disk, seeds, checkpoints, run folders, processes."""
