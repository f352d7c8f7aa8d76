"""Topic models: PLSA, joint PLSA and coupled PLSA, and what they share.

`Topics` holds the parameters of a language, and `encode` turns counts into topic vectors (`Vectors` that sum to 1),
which `retrieval.l1` or `retrieval.jensen_shannon` compare. A method is a module with a ``fit``.
"""

from jaxsim.methods.topics import coherence, cplsa, jplsa, plsa, starts, training
from jaxsim.methods.topics.topics import Topics, encode, known, perplexity, recount, responsibilities, shares

__all__ = ["Topics", "coherence", "cplsa", "encode", "jplsa", "known", "perplexity", "plsa", "recount",
           "responsibilities", "shares", "starts", "training"]
