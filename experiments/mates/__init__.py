"""Mate retrieval: every document of one language is a query for its counterpart in another (000, 002)."""
