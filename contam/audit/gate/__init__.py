"""Decide whether an audit meets the rules of a release."""
