"""The web page at `/`: forms and what they show."""
