"""Several devices and several processes as one training.

`sharding` spreads documents over a mesh, `term_shards` the terms of a projection; `processes` joins processes, and
`gathering` brings together arrays whose parts they hold. `workers` are processes for work on the host.
"""

import lazy_loader

__all__ = ["gathering", "processes", "sharding", "term_shards", "workers"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
