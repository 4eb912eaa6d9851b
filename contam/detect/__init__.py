"""Matching, evidence, policies and verdicts."""
