"""Open, watch and cache the indexes of a service."""
