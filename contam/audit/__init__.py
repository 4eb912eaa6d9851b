"""Audits: checks, chance estimates, reviews and the pack that holds them."""
