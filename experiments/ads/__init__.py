"""Graded preferences inside the candidates of a query."""
