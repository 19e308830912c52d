"""A network with one hidden layer, in NumPy: forward, loss, gradients, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = dict[str, Array]

CLASSES = 10


def new_weights(inputs: int, hidden: int, seed: int) -> Weights:
    """He initialisation, the same on every node because the seed is."""
    random = np.random.default_rng(seed)
    return {
        "w1": random.normal(0, np.sqrt(2 / inputs), (inputs, hidden)),
        "b1": np.zeros(hidden),
        "w2": random.normal(0, np.sqrt(2 / hidden), (hidden, CLASSES)),
        "b2": np.zeros(CLASSES),
    }


def forward(weights: Weights, images: Array) -> tuple[Array, Array]:
    """Return hidden activations (n, hidden) and class probabilities (n, 10)."""
    hidden = np.maximum(images @ weights["w1"] + weights["b1"], 0)
    logits = hidden @ weights["w2"] + weights["b2"]
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return hidden, shifted / shifted.sum(axis=1, keepdims=True)


def gradients(weights: Weights, images: Array, labels: NDArray[np.int64]) -> Weights:
    """Gradients of the mean cross-entropy, by name of weight."""
    hidden, probabilities = forward(weights, images)
    delta = probabilities.copy()
    delta[np.arange(len(labels)), labels] -= 1
    delta /= len(labels)
    back = (delta @ weights["w2"].T) * (hidden > 0)
    return {
        "w1": images.T @ back,
        "b1": back.sum(axis=0),
        "w2": hidden.T @ delta,
        "b2": delta.sum(axis=0),
    }


def step(weights: Weights, change: Weights, lr: float) -> None:
    """One step of gradient descent, in place."""
    for name in weights:
        weights[name] -= lr * change[name]


def accuracy(weights: Weights, images: Array, labels: NDArray[np.int64]) -> float:
    """Share of images whose most probable class is the label."""
    _, probabilities = forward(weights, images)
    return float((probabilities.argmax(axis=1) == labels).mean())


def load_split(data: Path, name: str) -> tuple[Array, NDArray[np.int64]]:
    """Read one split of the data set: images in 0..1 and labels."""
    with np.load(data / f"{name}.npz") as split:
        return split["images"], split["labels"]
