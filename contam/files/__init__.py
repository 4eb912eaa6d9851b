"""Open files as listed, write them whole, and read them strictly."""
