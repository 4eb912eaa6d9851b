"""Work on jobs: one process for each, in turns."""
