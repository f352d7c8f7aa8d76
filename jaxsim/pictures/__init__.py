"""Pictures of one model: its training, its scores on held-out pairs, its nearest neighbours, and a page of all that."""

import lazy_loader

__all__ = ["dimensions", "figures", "model_page", "neighbours", "report"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
