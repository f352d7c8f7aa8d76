"""Learned term weights on judged pairs of a query and a document (004)."""
