"""Writes the digits that scikit-learn ships as three files: train, validate, test."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SHARES = {"train": 0.6, "validate": 0.2, "test": 0.2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    order = np.random.default_rng(7).permutation(len(images))
    start = 0
    for name, share in SHARES.items():
        end = start + round(share * len(images))
        chosen = order[start:end]
        # Under another name first: a reader sees a whole file or none.
        partial = out / f"{name}.partial.npz"
        np.savez(partial, images=images[chosen], labels=labels[chosen])
        partial.replace(out / f"{name}.npz")
        print(f"{name}: {len(chosen)} digits")
        start = end


if __name__ == "__main__":
    main()
