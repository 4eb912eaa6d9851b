"""Read benchmark files of any usual format into items with parts, ids and content keys."""
