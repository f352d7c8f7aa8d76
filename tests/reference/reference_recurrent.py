"""Recurrent language models by NumPy in float64, a word at a time, from the equations; no import from jaxsim."""

from __future__ import annotations

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(name, row, states, layer):
    """New states of one cell for one word: ``row`` is what its gates read."""
    state, matrix = states[0], layer["recurrent"]
    size = len(state)
    blocks = [slice(at * size, (at + 1) * size) for at in range(matrix.shape[1] // size)]
    x, h = [row[b] + layer["bias"][b] for b in blocks], [state @ matrix[:, b] for b in blocks]
    if name == "tanh":
        return (np.tanh(x[0] + h[0]),)
    if name == "gru":
        reset, update = sigmoid(x[0] + h[0]), sigmoid(x[1] + h[1])
        new = np.tanh(x[2] + reset * (h[2] + layer["reset_bias"]))
        return ((1 - update) * new + update * state,)
    enter, forget, new, out = (a + b for a, b in zip(x, h, strict=True))
    memory = sigmoid(forget) * states[1] + sigmoid(enter) * np.tanh(new)
    return sigmoid(out) * np.tanh(memory), memory


def outputs(name, inputs, core, words, boundary, states):
    """What the softmax reads after each word of one stream; the states are zero where a sentence starts."""
    result, layers = [], sorted(key for key in core if key.startswith("layer"))
    for word in words:
        row = inputs[word]
        if word == boundary:
            states = [tuple(np.zeros_like(state) for state in one) for one in states]
        for at, layer in enumerate(layers):
            read = row @ core[layer]["kernel"] if "kernel" in core[layer] else row
            states[at] = step(name, read, states[at], core[layer])
            row = states[at][0]
        if "project" in core:
            row = row @ core["project"]["kernel"] + core["project"]["bias"]
        result.append(row)
    return np.array(result), states


def log_softmax(scores):
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


def window_loss(name, inputs, weights, bias, core, words, right, boundary, carry):
    """Full softmax of ``[T, B]`` words, summed over steps and averaged over streams."""
    total = 0.0
    for column in range(words.shape[1]):
        states = [tuple(state[column] for state in one) for one in carry]
        read, _ = outputs(name, inputs, core, words[:, column], boundary, states)
        total -= sum(log_softmax(weights @ row + bias)[word] for row, word in zip(read, right[:, column], strict=True))
    return total / words.shape[1]
