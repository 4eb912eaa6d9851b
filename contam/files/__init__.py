"""Files and folders on disk: opened as listed, written whole, read strictly."""
