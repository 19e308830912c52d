"""
Names of GPUs and other accelerators that are on sale, for the advice on a name that is none.

New models appear at any time, so an unknown name is never refused. A configuration, a catalogue
and a driver may spell one model differently (`RTX4090`, `rtx_4090`, `NVIDIA GeForce RTX 4090`);
`model_words` leaves what they have in common.
"""

from __future__ import annotations

import re

__all__ = ["GPU_NAMES", "is_gpu_name", "model_words"]

# The models that the product pages of the vendors list, in the spelling of dstack and of its
# catalogue gpuhunt (https://github.com/dstackai/gpuhunt), which leave out the brand and spaces.
_NVIDIA = """
    A2 A10 A10G A10M A16 A30 A40 A100 A100X A800 B100 B200 B300 GB10 GB200 GB300 GH200 H20 H100
    H100NVL H200 H200NVL H800 K20 K40 K80 L2 L4 L20 L40 L40G L40S M4 M10 M40 M60 P4 P6 P40 P100
    T4 T4G V100 V100S
    A2000 A4000 A4500 A5000 A5500 A6000 RTXA2000 RTXA4000 RTXA4500 RTXA5000 RTXA5500 RTXA6000
    RTX2000Ada RTX4000Ada RTX4500Ada RTX5000Ada RTX5880Ada RTX6000Ada RTX3000 RTX4000 RTX5000
    RTX6000 RTX8000 RTXPRO2000 RTXPRO4000 RTXPRO4500 RTXPRO5000 RTXPRO6000 RTXPRO6000MaxQ
    RTXPRO6000WK
    P1000 P2000 P4000 P5000 P6000 GP100 GV100 T400 T600 T1000 TitanX TitanXp TitanV TitanRTX
    GTX970 GTX980 GTX980Ti GTX1050 GTX1050Ti GTX1060 GTX1070 GTX1070Ti GTX1080 GTX1080Ti GTX1650
    GTX1660 GTX1660Ti
    RTX2060 RTX2070 RTX2080 RTX2080Ti RTX3050 RTX3060 RTX3060Ti RTX3070 RTX3070Ti RTX3080
    RTX3080Ti RTX3090 RTX3090Ti RTX4060 RTX4060Ti RTX4070 RTX4070Ti RTX4080 RTX4090 RTX4090D
    RTX5050 RTX5060 RTX5060Ti RTX5070 RTX5070Ti RTX5080 RTX5090 RTX5090D
    Orin Xavier Thor
"""
_AMD = """
    MI25 MI50 MI60 MI100 MI210 MI250 MI250X MI300 MI300A MI300X MI308X MI325X MI350X MI355X
    V340 V520 V620 V710 W6800 W7800 W7900 RX6800 RX6800XT RX6900XT RX7600 RX7700XT RX7800XT
    RX7900XT RX7900XTX RX9070 RX9070XT
"""
_INTEL = """
    Gaudi Gaudi2 Gaudi3 Max1100 Max1450 Max1550 Flex140 Flex170 A380 A750 A770 B570 B580 B50 B60
"""
# `v5litepod` and `v5e` are two names of one.
_GOOGLE = "v2 v3 v4 v5e v5litepod v5p v6e v7 v7x TPU7x"
_TENSTORRENT = "N150 N150d N150s N300 N300d N300s P100a P150 P150a P150b P300"

_BRANDS = frozenset({"nvidia", "tesla", "geforce", "quadro", "amd", "radeon", "instinct", "intel"})
"""Words before the model that people leave out. `RTX` is not one: there are T4 and RTX 4000."""

GPU_NAMES = {
    name.lower(): name for name in f"{_NVIDIA} {_AMD} {_INTEL} {_GOOGLE} {_TENSTORRENT}".split()
}
"""Each model as it is written, by its name in lower case."""


def model_words(name: str) -> list[str]:
    """Return the words of a model's name in lower case, without the brand."""
    words = [word for word in re.split(r"[^a-z0-9.]+", name.lower()) if word]
    return [word for word in words if word not in _BRANDS] or words


def is_gpu_name(name: str) -> bool:
    """Tell whether a name begins with that of a known model: `A100-SXM4-80GB` does."""
    built = ""
    for word in model_words(name):
        built += word
        # Cards of one series may be named without it: `4090`.
        if built in GPU_NAMES or f"rtx{built}" in GPU_NAMES or f"gtx{built}" in GPU_NAMES:
            return True
    return False
