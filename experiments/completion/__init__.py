"""Sentence completion: five words for one hole (completion §5)."""
