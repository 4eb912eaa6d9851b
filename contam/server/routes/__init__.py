"""Handlers: translate a request, call one function, translate its answer."""
