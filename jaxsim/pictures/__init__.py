"""Pictures of one model: its training, its scores on held-out pairs, and a page of nearest neighbours."""

import lazy_loader

__all__ = ["dimensions", "figures", "neighbours", "report"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
