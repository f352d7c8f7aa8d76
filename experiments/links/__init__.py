"""Supervised Semantic Indexing (003): links, short queries, clicks, and links across languages."""
