"""Route handlers: parse a request, call one function, encode its answer."""
