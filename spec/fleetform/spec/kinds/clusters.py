"""Kubernetes and Slurm clusters: as hosts of a fleet, and as backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.field_facts import SECRET, control
from fleetform.spec.kinds.backend import Backend
from fleetform.spec.kinds.base import Entries, Model, Name, one_or_many, refuse
from fleetform.spec.kinds.credentials import Guarded
from fleetform.spec.kinds.hosts import Hostname
from fleetform.spec.kinds.offers import Text, Texts
from fleetform.spec.kinds.ports import Port
from fleetform.spec.quantities import parse_gpu


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


_Parts = Iterator[tuple[tuple[str | int, ...], Guarded | None]]


class Kubeconfig(Guarded):
    """The access to a cluster, as a kubeconfig."""

    filename: Text | None = None
    """The kubeconfig file, on the machine that runs fleetform. Example: `~/.kube/config`."""

    data: Annotated[Text | None, SECRET] = None
    """
    The content of the kubeconfig, in place of `filename`, as a reference to a secret. Example: `${{
    secrets.kubeconfig }}`.
    """


class KubernetesJump(Model):
    """The node through which pods are reached over SSH."""

    hostname: Hostname | None = None
    """The host name or address of the node. Default: any node. Example: `204.12.171.137`."""

    port: Port | None = None
    """The port that is opened on the node. Example: `32000`."""


class KubernetesContext(Model):
    """One cluster of the kubeconfig."""

    name: Text
    """The name of the context. Example: `on-prem`."""

    proxy_jump: KubernetesJump | None = None
    """The node through which the pods of this cluster are reached. Example: `{port: 32000}`."""


def _contexts(value: Any) -> Any:
    listed = one_or_many(value)
    if not isinstance(listed, list | tuple):
        return value
    return [{"name": item} if isinstance(item, str) else item for item in listed]


class Kubernetes(Backend):
    """
    Kubernetes clusters.

    Example:
        type: kubernetes
        kubeconfig:
          filename: ~/.kube/config
        proxy_jump:
          port: 32000
    """

    type: Literal["kubernetes"]
    """The kind of the document: `kubernetes`."""

    kubeconfig: Annotated[Kubeconfig | None, control()] = None
    """
    The access to the clusters. Default: the service account of the pod that runs fleetform.
    Example: `{filename: ~/.kube/config}`.
    """

    contexts: (
        Annotated[
            tuple[KubernetesContext, ...],
            Field(min_length=1),
            BeforeValidator(
                _contexts,
                json_schema_input_type=str | KubernetesContext | Entries[str | KubernetesContext],
            ),
            control(),
        ]
        | None
    ) = None
    """
    The contexts of the clusters. Default: the current context. Example: `[on-prem, {name: edge,
    proxy_jump: {port: 32001}}]`.
    """

    namespace: Annotated[Text | None, control()] = None
    """The namespace of the pods. Example: `fleetform`."""

    proxy_jump: Annotated[KubernetesJump | None, control()] = None
    """
    The node through which pods are reached over SSH. Example: `{hostname: 204.12.171.137, port:
    32000}`.
    """

    def guarded_parts(self) -> _Parts:
        yield ("kubeconfig",), self.kubeconfig


class SlurmKey(Guarded):
    """The SSH key for a login node."""

    path: Text | None = None
    """The file with the key, on the machine that runs fleetform. Example: `~/.ssh/slurm`."""

    content: Annotated[Text | None, SECRET] = None
    """
    The key itself, in place of `path`, as a reference to a secret. Example: `${{ secrets.slurm_key
    }}`.
    """


def _gpu_name(value: str) -> str:
    gpu = parse_gpu(value)
    if gpu.count is not None:
        raise refuse(
            "bad-value",
            "Slurm knows the number of GPUs of a node.",
            "Write for example `A100:80GB`.",
        )
    return value


class SlurmGpus(Model):
    """Partitions whose nodes have the same GPUs."""

    gpu: Annotated[str, AfterValidator(_gpu_name)]
    """The GPUs: name, and optionally memory. Example: `A100:80GB`."""

    partitions: Texts
    """The names of the partitions. Example: `[gpu, gpu-long]`."""


class SlurmCluster(Model):
    """A Slurm cluster and its login node."""

    name: Text
    """The name of the cluster in fleetform. Example: `alps`."""

    hostname: Hostname
    """The host name or address of the login node. Example: `login.alps.example.com`."""

    port: Port | None = None
    """The SSH port of the login node. Default: 22. Example: `22`."""

    user: Text
    """The user to sign in and submit as. Example: `fleetform`."""

    private_key: SlurmKey
    """The SSH key of the user. Example: `{path: ~/.ssh/slurm}`."""

    gpu_partitions: (
        Annotated[
            tuple[SlurmGpus, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=SlurmGpus | Entries[SlurmGpus]),
        ]
        | None
    ) = None
    """
    The partitions with GPUs, for clusters whose configuration does not name the GPUs. Example:
    `[{gpu: A100, partitions: [gpu]}]`.
    """

    cpu_partitions: Texts | None = None
    """The partitions without GPUs. Example: `[cpu]`."""


class Slurm(Backend):
    """
    Slurm clusters.

    Example:
        type: slurm
        clusters:
          - name: alps
            hostname: login.alps.example.com
            user: fleetform
            private_key:
              path: ~/.ssh/slurm
    """

    type: Literal["slurm"]
    """The kind of the document: `slurm`."""

    clusters: Annotated[
        tuple[SlurmCluster, ...],
        Field(min_length=1),
        BeforeValidator(one_or_many, json_schema_input_type=SlurmCluster | Entries[SlurmCluster]),
        control(),
    ]
    """
    The clusters. Example: `[{name: alps, hostname: login.alps.example.com, user: me, private_key:
    {path: ~/.ssh/slurm}}]`.
    """

    def guarded_parts(self) -> _Parts:
        for number, cluster in enumerate(self.clusters):
            yield ("clusters", number, "private_key"), cluster.private_key
