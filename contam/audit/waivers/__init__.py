"""Waivers: flags that a person has looked at and accepted."""
