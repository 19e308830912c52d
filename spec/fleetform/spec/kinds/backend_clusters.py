"""
Backends that are clusters: Kubernetes and Slurm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.kinds.backend import Backend
from fleetform.spec.kinds.base import Entries, Model, one_or_many, refuse
from fleetform.spec.kinds.credentials import Guarded
from fleetform.spec.kinds.hosts import Hostname, Port
from fleetform.spec.kinds.offers import Text, Texts
from fleetform.spec.quantities import parse_gpu

_Parts = Iterator[tuple[tuple[str | int, ...], Guarded | None]]


class Kubeconfig(Guarded):
    """How a cluster is reached, as its own tools have it."""

    guarded: ClassVar[frozenset[str]] = frozenset({"data"})

    filename: Text | None = None
    """The file, on the machine that fleetform runs on. Example: `~/.kube/config`."""

    data: Text | None = None
    """Its content, in place of the file. Example: `${{ secrets.kubeconfig }}`."""


class KubernetesJump(Model):
    """The node through which pods are reached over SSH."""

    hostname: Hostname | None = None
    """Its address; any node's if not said. Example: `204.12.171.137`."""

    port: Port | None = None
    """The port that is opened on it. Example: `32000`."""


class KubernetesContext(Model):
    """One cluster of the kubeconfig."""

    name: Text
    """The context's name. Example: `on-prem`."""

    proxy_jump: KubernetesJump | None = None
    """The node through which its pods are reached. Example: `{port: 32000}`."""


def _contexts(value: Any) -> Any:
    listed = one_or_many(value)
    if not isinstance(listed, list | tuple):
        return value
    return [{"name": item} if isinstance(item, str) else item for item in listed]


class Kubernetes(Backend):
    """
    Clusters of Kubernetes.

    Example:
        type: kubernetes
        kubeconfig:
          filename: ~/.kube/config
        proxy_jump:
          port: 32000
    """

    type: Literal["kubernetes"]
    """The kind of the document: `kubernetes`."""

    kubeconfig: Kubeconfig | None = None
    """How clusters are reached; the account of the pod that fleetform runs in, if not said. Example: `{filename: ~/.kube/config}`."""

    contexts: (
        Annotated[
            tuple[KubernetesContext, ...],
            Field(min_length=1),
            BeforeValidator(
                _contexts,
                json_schema_input_type=str | KubernetesContext | Entries[str | KubernetesContext],
            ),
        ]
        | None
    ) = None
    """The clusters, by their contexts; the current one if not said. Example: `[on-prem, {name: edge, proxy_jump: {port: 32001}}]`."""

    namespace: Text | None = None
    """The namespace that pods are made in. Example: `fleetform`."""

    proxy_jump: KubernetesJump | None = None
    """The node through which pods are reached. Example: `{hostname: 204.12.171.137, port: 32000}`."""

    def guarded_parts(self) -> _Parts:
        yield ("kubeconfig",), self.kubeconfig


class SlurmKey(Guarded):
    """The key that a login node is entered with."""

    guarded: ClassVar[frozenset[str]] = frozenset({"content"})

    path: Text | None = None
    """Its file, on the machine that fleetform runs on. Example: `~/.ssh/slurm`."""

    content: Text | None = None
    """The key itself, in place of its file. Example: `${{ secrets.slurm_key }}`."""


def _gpu_name(value: str) -> str:
    gpu = parse_gpu(value)
    if gpu.count is not None:
        raise refuse(
            "bad-value",
            "How many GPUs a node has is known to Slurm.",
            "Write for example `A100:80GB`.",
        )
    return value


class SlurmGpus(Model):
    """Partitions whose nodes have the same GPUs."""

    gpu: Annotated[str, AfterValidator(_gpu_name)]
    """Which GPUs: name, and memory if need be. Example: `A100:80GB`."""

    partitions: Texts
    """The partitions. Example: `[gpu, gpu-long]`."""


class SlurmCluster(Model):
    """A cluster, and how its login node is reached."""

    name: Text
    """What it is called here. Example: `alps`."""

    hostname: Hostname
    """The login node. Example: `login.alps.example.com`."""

    port: Port | None = None
    """Its port; 22 if not said. Example: `22`."""

    user: Text
    """Who signs in there, and submits. Example: `fleetform`."""

    private_key: SlurmKey
    """The key to sign in with. Example: `{path: ~/.ssh/slurm}`."""

    gpu_partitions: (
        Annotated[
            tuple[SlurmGpus, ...],
            Field(min_length=1),
            BeforeValidator(one_or_many, json_schema_input_type=SlurmGpus | Entries[SlurmGpus]),
        ]
        | None
    ) = None
    """Partitions with GPUs, where Slurm's own words do not say which. Example: `[{gpu: A100, partitions: [gpu]}]`."""

    cpu_partitions: Texts | None = None
    """Partitions without GPUs. Example: `[cpu]`."""


class Slurm(Backend):
    """
    Clusters of Slurm.

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
    ]
    """The clusters. Example: `[{name: alps, hostname: login.alps.example.com, user: me, private_key: {path: ~/.ssh/slurm}}]`."""

    def guarded_parts(self) -> _Parts:
        for number, cluster in enumerate(self.clusters):
            yield ("clusters", number, "private_key"), cluster.private_key
