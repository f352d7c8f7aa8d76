"""How good a model is: search, scores of rankings and of pairs, and whether differences are more than chance.

`retrieval` finds the best candidates, `neighbours` their labels, and `metrics` scores them. `mates`, `ranking`,
`all_pairs`, `questions` (opposites among several choices) and `completion` (of sentences) are whole tasks; `trec` reads
and writes test collections, `significance` compares systems.
"""

import lazy_loader

__all__ = ["all_pairs", "completion", "mates", "metrics", "neighbours", "questions", "ranking", "retrieval",
           "significance", "trec"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
