"""Scripts that reproduce the papers' tables, and the measurements of this library; run as modules from the root."""
