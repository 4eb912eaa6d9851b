"""Run checks of many items, and re-scorings, as jobs."""
