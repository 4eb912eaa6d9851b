"""Compute what each model scores without the contaminated items."""
