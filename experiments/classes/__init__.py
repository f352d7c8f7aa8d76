"""Classification across languages."""
