"""
Hosts of clusters that somebody else manages: Kubernetes and Slurm.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from fleetform.spec.kinds.base import Entries, Model, Name, one_or_many
from fleetform.spec.kinds.offers import Text, Texts


class Toleration(Model):
    """A toleration of the pods of a fleet, as in Kubernetes."""

    key: Text | None = None
    """The key of the taint. Default: every taint. Example: `nvidia.com/gpu`."""

    operator: Literal["Exists", "Equal"] | None = None
    """
    How the taint is compared. `Exists`: by its key. `Equal`: by its key and value. Example:
    `Exists`.
    """

    value: Text | None = None
    """The value of the taint. Example: `reserved`."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """
    The effect of the taint. Default: every effect. `NoSchedule`: no pods start on the node.
    `PreferNoSchedule`: pods start there only if there is no other node. `NoExecute`: running pods
    are ended too. Example: `NoSchedule`.
    """


class KubernetesHosts(Model):
    """The nodes of a Kubernetes cluster that form a fleet."""

    backend: Name | None = None
    """The declared backend with the access to the cluster. Example: `kubernetes`."""

    context: Text | None = None
    """The context of the kubeconfig. Default: the current context. Example: `on-prem`."""

    namespace: Text | None = None
    """The namespace of the pods. Example: `research`."""

    node_selector: dict[str, str] | None = None
    """Labels that a node must have. Example: `{gpu.vendor: nvidia}`."""

    tolerations: (
        Annotated[
            tuple[Toleration, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=Toleration | Entries[Toleration]),
        ]
        | None
    ) = None
    """The tolerations of the pods. Example: `[{key: nvidia.com/gpu, operator: Exists}]`."""

    priority_class: Text | None = None
    """The priority class of the pods. Example: `batch`."""

    runtime_class: Text | None = None
    """The runtime class of the pods. Example: `nvidia`."""


class SlurmHosts(Model):
    """The options of the allocations of a Slurm cluster that form a fleet."""

    backend: Name | None = None
    """The declared backend with the access to the cluster. Example: `slurm`."""

    cluster: Text | None = None
    """The name of the cluster, if the backend has several. Example: `alps`."""

    partitions: Texts | None = None
    """The partitions of the allocations. Example: `[gpu]`."""

    account: Text | None = None
    """The account that is charged. Example: `vision`."""

    qos: Text | None = None
    """The quality of service. Example: `normal`."""

    constraint: Text | None = None
    """
    The features that a node must have, in the syntax of `sbatch --constraint`. Example:
    `a100&nvlink`.
    """

    reservation: Text | None = None
    """The Slurm reservation to use. Example: `conference`."""
