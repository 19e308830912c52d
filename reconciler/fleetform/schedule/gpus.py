"""
Which GPUs satisfy what a run asks for.

People write the short names of the trade (`A100`, `RTX4090`), drivers report long ones
(`NVIDIA A100-SXM4-80GB`, `NVIDIA GeForce RTX 4090`), and a card sold as 24 GB reports less.
"""

from __future__ import annotations

from fleetform.model.instance import Gpu
from fleetform.model.run import GpuRequirement
from fleetform.spec.quantities.gpu_names import model_words

_NOMINAL_PERCENT = 92
"""
A card counts as having its nominal memory when it reports at least this share: ECC and firmware
keep some. T4: 15360 of 16384 MiB (93.7 %), L4: 23034 of 24576 (93.7 %), V100: 98.6 %. The next
smaller card on sale has 83 % at most (20 and 24 GB), so no two are taken for one another.
"""


def gpu_matches(requirement: GpuRequirement, gpu: Gpu) -> bool:
    """Tell whether `gpu` is one of those that `requirement` allows, whatever is free."""
    if requirement.vendor and requirement.vendor.lower() != gpu.vendor.lower():
        return False
    if requirement.names and not any(_is_called(gpu.name, name) for name in requirement.names):
        return False
    smallest, largest = requirement.memory_min_bytes, requirement.memory_max_bytes
    if smallest is not None and gpu.memory_bytes * 100 < smallest * _NOMINAL_PERCENT:
        return False
    return largest is None or gpu.memory_bytes <= largest


def _is_called(reported: str, asked: str) -> bool:
    """Tell whether `asked` is the model, with any number of the words that follow it."""
    wanted = "".join(model_words(asked))
    if not wanted:
        return False
    built = ""
    for word in model_words(reported):
        built += word
        if built == wanted:
            return True
    return False
