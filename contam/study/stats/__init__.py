"""Hold the estimators of the studies: plain functions over arrays."""
