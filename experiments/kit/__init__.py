"""What every experiment shares: records of results, the papers' figures, and the report made from both."""

import lazy_loader

__all__ = ["environment", "papers", "record_schema", "records", "report"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
