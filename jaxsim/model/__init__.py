"""`Model`: texts in, vectors and similarities out; its folders, search indexes, and exports to other tools."""

import lazy_loader

__all__ = ["ACTIVATIONS", "Model", "WEIGHTINGS", "export", "folders", "hubs", "index", "mteb", "onnx", "parts",
           "rounding", "words"]
_MODULES = ["export", "folders", "hubs", "index", "mteb", "onnx", "parts", "rounding", "words"]
_NAMES = {"model": ["ACTIVATIONS", "Model", "WEIGHTINGS"]}
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=_MODULES, submod_attrs=_NAMES)
