"""The indexes of a service: opened, watched, and held in memory."""
