"""Flags that a person has looked at and waived."""
