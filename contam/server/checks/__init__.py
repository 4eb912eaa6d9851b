"""A check of items: read, admitted, put to the indexes, answered."""
