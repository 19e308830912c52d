"""The images that AWS and Canonical publish for instance types, as names of public parameters."""

from __future__ import annotations

from fleetform.providers.offers.catalogue import offers

__all__ = ["image_parameter"]

_NVIDIA = (
    "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
_UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{arch}/hvm/ebs-gp3/ami-id"
"""Both images have cloud-init, sudo and Python."""

_NVIDIA_ARCHITECTURES = {"x86": "x86_64", "arm": "arm64"}
_UBUNTU_ARCHITECTURES = {"x86": "amd64", "arm": "arm64"}

_OLD_GPUS = frozenset({"K80", "M60", "V100"})
"""The open kernel modules of NVIDIA, which the image has, support Turing and later."""


def image_parameter(instance_type: str) -> str:
    """
    Return the name of the parameter with the image for a type; empty: none has a driver for its GPUs.

    Types without GPUs get Ubuntu.
    """
    offer = next((one for one in offers("aws") if one.instance_type == instance_type), None)
    if offer is None or offer.gpu_vendor not in {"", "nvidia"} or offer.gpu_name in _OLD_GPUS:
        return ""
    if offer.gpu_vendor:
        return _NVIDIA.format(arch=_NVIDIA_ARCHITECTURES[offer.arch])
    return _UBUNTU.format(arch=_UBUNTU_ARCHITECTURES[offer.arch])
