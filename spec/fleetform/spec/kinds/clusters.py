"""
Hosts of clusters that somebody else manages: Kubernetes and Slurm.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from fleetform.spec.kinds.base import Entries, Model, Name, one_or_many
from fleetform.spec.kinds.offers import Text, Texts


class Toleration(Model):
    """A taint that pods of a fleet put up with, as Kubernetes has it."""

    key: Text | None = None
    """The taint; each of them if not said. Example: `nvidia.com/gpu`."""

    operator: Literal["Exists", "Equal"] | None = None
    """How it is compared. `Exists`: by its key. `Equal`: by its value as well. Example: `Exists`."""

    value: Text | None = None
    """The taint's value. Example: `reserved`."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """
    What the taint does; anything if not said. `NoSchedule`: no pod starts there.
    `PreferNoSchedule`: few do. `NoExecute`: those that run there end. Example: `NoSchedule`.
    """


class KubernetesHosts(Model):
    """Which nodes of a Kubernetes cluster a fleet has, and as whom."""

    backend: Name | None = None
    """The declared backend that says how the cluster is reached. Example: `kubernetes`."""

    context: Text | None = None
    """The context of its kubeconfig; the current one if not said. Example: `on-prem`."""

    namespace: Text | None = None
    """The namespace that pods are made in. Example: `research`."""

    node_selector: dict[str, str] | None = None
    """Labels that a node has to have. Example: `{gpu.vendor: nvidia}`."""

    tolerations: (
        Annotated[
            tuple[Toleration, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=Toleration | Entries[Toleration]),
        ]
        | None
    ) = None
    """Taints that are put up with. Example: `[{key: nvidia.com/gpu, operator: Exists}]`."""

    priority_class: Text | None = None
    """The priority class of the pods. Example: `batch`."""

    runtime_class: Text | None = None
    """The runtime class of the pods. Example: `nvidia`."""


class SlurmHosts(Model):
    """As what a fleet's hosts are asked for at a Slurm cluster."""

    backend: Name | None = None
    """The declared backend that says how the cluster is reached. Example: `slurm`."""

    cluster: Text | None = None
    """The cluster, where the backend has several. Example: `alps`."""

    partitions: Texts | None = None
    """The partitions that allocations are asked of. Example: `[gpu]`."""

    account: Text | None = None
    """The account that is charged. Example: `vision`."""

    qos: Text | None = None
    """The quality of service. Example: `normal`."""

    constraint: Text | None = None
    """Features that a node has to have, as sbatch takes them. Example: `a100&nvlink`."""

    reservation: Text | None = None
    """The reservation there that is used. Example: `conference`."""
