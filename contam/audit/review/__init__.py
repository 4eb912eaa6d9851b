"""What readers say of a sample of items, and what follows for all."""
