"""An audit in the forms of other tools."""
