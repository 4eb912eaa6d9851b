"""The MinHash part of an index: signatures, bands, and checks of both."""
