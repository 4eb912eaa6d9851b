"""The web page at `/`: sessions, forms and what they show."""
