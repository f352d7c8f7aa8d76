"""Similarity of all pairs of documents of a labelled collection (001)."""
