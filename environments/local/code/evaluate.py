"""Prints the accuracy of the trained network on digits that nothing has seen."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from network import accuracy, load_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data: Path = parser.parse_args().data
    with np.load(data / "model.npz") as stored:
        weights = {name: stored[name] for name in stored.files}
    images, labels = load_split(data, "test")
    print(f"accuracy on {len(labels)} unseen digits: {accuracy(weights, images, labels):.4f}")


if __name__ == "__main__":
    main()
