"""Verdicts and evaluation logs -> what each model scores without the contaminated items."""
