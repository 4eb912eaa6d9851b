"""The page at `/`: who looks at it, what they typed, and what they are shown."""
