"""Jobs: accepted, stored on disk, run in their own process, and answered."""
