"""The ONNX graph of one side of a model: numbers of words in, vectors of length one out.

The graph holds the term weights, the projection, the activation and the scaling to length one: of the vector, and
before an activation of the weighted text too. Turning a text into numbers is left to the ``tokenizer.json``
that `export.export` writes beside it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxsim import __version__, checks

__all__ = ["INPUTS", "OUTPUT", "graph"]

INPUTS = ("input_ids", "attention_mask")
"""What the graph reads, ``[texts, width]`` int64 each: numbers of words, and 1 where there is one (0: padding)."""

OUTPUT = "sentence_embedding"
"""What it gives, ``[texts, dim]`` float32."""

_OPSET, _IR = 18, 8  # of ONNX 1.13; runtimes since then read it
_MOST = 2**31 - 2**20  # bytes of a protocol buffer, and some room for the rest of the graph
_Nodes = list[tuple[str, list[str], str, dict[str, Any]]]  # operator, inputs, output, attributes
_SIGMOID: _Nodes = [
    ("Sigmoid", ["sum"], "bent", {}),
    ("Abs", ["sum"], "sizes", {}),
    ("ReduceMax", ["sizes", "axis"], "largest", {"keepdims": 1}),
    ("Sign", ["largest"], "known", {}),  # 0 for a text without known words, whose vector is zero
    ("Mul", ["bent", "known"], "active", {}),
]
_ACTIVATIONS: dict[str, _Nodes] = {"none": [], "tanh": [("Tanh", ["sum"], "active", {})],
                                  "sigmoid": _SIGMOID}


def graph(
    table: np.ndarray, *, weighting: str, activation: str = "none", scale: np.ndarray | None = None,
    once: np.ndarray | None = None,
) -> bytes:
    """Writes the graph.

    Args:
      table: ``[num_terms + 1, dim]`` float32, as `export.rows` gives it, then the row of unknown words, which is zero;
        with ``scale`` also float16 or int8, whose rows are widened when they are looked up.
      weighting: ``"tf"``, ``"tf_idf"`` or ``"log_tf_idf"``; the idf is in the rows, or the scales, already.
      activation: ``"none"``, or ``"tanh"`` or ``"sigmoid"`` of the sum, for which the text is scaled to length one.
      scale: ``[num_terms + 1]`` float32, by which the rows of a table are multiplied; or None.
      once: ``[num_terms + 1]`` float32, the weight of each term at a count of one, and 0 for unknown words; of an
        activation alone.

    Returns:
      A serialised ``ModelProto``.

    Raises:
      ValueError: for a table that no such file can hold (2 GB).
      ImportError: if ``onnx`` is missing; the message says how to install it.

    Example:
      >>> len(graph(np.zeros((3, 2), np.float32), weighting="tf")) > 0  # doctest: +SKIP
      True
    """
    checks.expect(table.nbytes < _MOST, "model", f"weights of less than {_MOST:,} bytes", f"{table.nbytes:,}")
    library = _onnx()
    helper, arrays, kinds = library.helper, library.numpy_helper, library.TensorProto
    constants = {
        "table": np.ascontiguousarray(table, np.float32 if scale is None else None), "one": np.ones(1, np.float32),
        "bits": np.full(1, 1 / math.log(2), np.float32), "tiny": np.full(1, np.finfo(np.float32).tiny),
        "terms": np.full(1, len(table), np.int64), "axis": np.ones(1, np.int64),
    }  # fmt: skip
    looked_up = [("Gather", ["table", "input_ids"], "vectors", {"axis": 0}),
                 ("Unsqueeze", ["weight", "axis"], "row", {})]  # fmt: skip
    bent = activation != "none"
    if bent:
        checks.expect(once is not None, "once", "the weights of the terms, for an activation", "None")
        constants["once"] = np.ascontiguousarray(once, np.float32)
    if scale is not None:
        constants["scale"] = np.ascontiguousarray(scale, np.float32)
        looked_up = [
            ("Gather", ["table", "input_ids"], "narrow", {"axis": 0}),
            ("Cast", ["narrow"], "vectors", {"to": kinds.FLOAT}),
            ("Gather", ["scale", "input_ids"], "factor", {"axis": 0}),
            ("Mul", ["weight", "factor"], "scaled", {}),
            ("Unsqueeze", ["scaled", "axis"], "row", {}),
        ]
    nodes = [
        ("Cast", ["attention_mask"], "mask", {"to": kinds.FLOAT}),
        *(_counts() if weighting == "log_tf_idf" or bent else []),
        *(_logarithm() if weighting == "log_tf_idf" else [("Identity", ["mask"], "as_counted", {})]),
        *(_unit() if bent else [("Identity", ["as_counted"], "weight", {})]),
        *looked_up,
        ("MatMul", ["row", "vectors"], "row_sum", {}),
        ("Squeeze", ["row_sum", "axis"], "sum", {}),
        *_ACTIVATIONS[activation],
    ]
    last = nodes[-1][2]
    nodes += [  # over the largest first, whose square neither overflows nor vanishes
        ("Abs", [last], "magnitudes", {}),
        ("ReduceMax", ["magnitudes", "axis"], "greatest", {"keepdims": 1}),
        ("Max", ["greatest", "tiny"], "scaled_by", {}),  # a zero vector stays zero
        ("Div", [last, "scaled_by"], "within_one", {}),
        ("ReduceL2", ["within_one", "axis"], "norm", {"keepdims": 1}),
        ("Max", ["norm", "tiny"], "length", {}),
        ("Div", ["within_one", "length"], OUTPUT, {}),
    ]
    used = {name for _, inputs, _, _ in nodes for name in inputs}
    described = helper.make_graph(
        [helper.make_node(kind, inputs, [output], **attributes) for kind, inputs, output, attributes in nodes],
        "jaxsim",
        [helper.make_tensor_value_info(name, kinds.INT64, ["texts", "width"]) for name in INPUTS],
        [helper.make_tensor_value_info(OUTPUT, kinds.FLOAT, ["texts", table.shape[1]])],
        [arrays.from_array(value, name) for name, value in constants.items() if name in used],
    )
    model = helper.make_model(described, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR,
                              producer_name="jaxsim", producer_version=__version__)  # fmt: skip
    return model.SerializeToString()


def _counts() -> _Nodes:
    """How often the word of each occurrence occurs."""
    return [
        ("Shape", ["input_ids"], "number", {"start": 0, "end": 1}),
        ("Concat", ["number", "terms"], "shape", {"axis": 0}),
        ("ConstantOfShape", ["shape"], "zeros", {}),
        ("ScatterElements", ["zeros", "input_ids", "mask"], "counts", {"axis": 1, "reduction": "add"}),
        ("GatherElements", ["counts", "input_ids"], "tf", {"axis": 1}),
        ("Max", ["tf", "one"], "occurrences", {}),  # padding may have none
    ]


def _logarithm() -> _Nodes:
    """Each occurrence of a word gets log2(tf + 1) / tf, so that all of them together get log2(tf + 1)."""
    return [
        ("Add", ["tf", "one"], "more", {}),
        ("Log", ["more"], "nats", {}),
        ("Mul", ["nats", "bits"], "log_tf", {}),
        ("Div", ["log_tf", "occurrences"], "share", {}),
        ("Mul", ["share", "mask"], "as_counted", {}),
    ]


def _unit() -> _Nodes:
    """Weights over the length of the text: the squares of a word's weight are shared by its occurrences."""
    return [
        ("Gather", ["once", "input_ids"], "term_weight", {"axis": 0}),
        ("Mul", ["as_counted", "term_weight"], "occurrence", {}),
        ("Mul", ["occurrence", "occurrence"], "square", {}),
        ("Mul", ["square", "occurrences"], "part", {}),
        ("ReduceSum", ["part", "axis"], "squares", {"keepdims": 1}),
        ("Sqrt", ["squares"], "text_norm", {}),
        ("Max", ["text_norm", "tiny"], "text_length", {}),  # an empty text stays empty
        ("Div", ["as_counted", "text_length"], "weight", {}),
    ]


def _onnx():
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            "export: expected the package onnx, got none; install it with: pip install 'jaxsim-text[export]'"
        ) from error
    return onnx
