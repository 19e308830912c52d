"""
A backend: a cloud or a cluster that hosts can be had from, and how it is reached.

Its `type:` is the cloud's, and its name too unless it says one. Keys may stand in the document,
since files of dstack have them there; `credentials` says what becomes of them.

Types that differ in nothing but their fields are tables of `backends.toml`, and models are built
from it. A type with rules of its own, as `kubernetes` and `slurm`, has a class.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from fleetform.spec.field_facts import SECRET, Facts, control, identity
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Document,
    Flag,
    Guarded,
    Model,
    Name,
    contradiction,
    listed,
    refuse,
    warn_in_clear,
)
from fleetform.spec.kinds.hosts import Hostname
from fleetform.spec.kinds.offers import Text, Texts
from fleetform.spec.kinds.ports import Port
from fleetform.spec.quantities import parse_gpu


class With(NamedTuple):
    """The type of credentials that requires a field, and that alone may have it."""

    type: str


class Credentials(Guarded):
    """The credentials for a backend; `type` decides which fields are required."""

    def problems(self) -> Iterator[Problem]:
        """What is missing or too much for the type; paths begin below `creds`."""
        chosen = str(getattr(self, "type", ""))
        for name, field in type(self).model_fields.items():
            needed_by = [one.type for one in field.metadata if isinstance(one, With)]
            is_set = getattr(self, name) is not None
            if chosen in needed_by and not is_set:
                yield Problem(
                    "missing-field",
                    (),
                    f"Credentials of the type `{chosen}` have `{name}`, which is missing.",
                    f"Add `{name}: ${{{{ secrets.NAME }}}}`."
                    if name in self.guarded()
                    else f"Add `{name}:`.",
                    at_key=True,
                )
            elif needed_by and chosen not in needed_by and is_set:
                yield contradiction(
                    name,
                    f"`{name}` does not go with credentials of the type `{chosen}`.",
                    "Remove it, or choose the type that it goes with.",
                )


class Backend(Document):
    """A cloud or cluster that provides hosts."""

    type: str
    """The type of the cloud or cluster. Example: `aws`."""

    # Nothing is nobody's name; a schema would show it as the default.
    name: Annotated[
        Name, Field(json_schema_extra=lambda schema: schema.pop("default", None)), identity()
    ] = ""
    """
    The name of the backend. A document with another name declares another backend. Default: the
    type. Example: `aws-research`.
    """

    region: Annotated[Text | None, control()] = None
    """One region, in place of `regions`. Example: `eu-west-1`."""

    regions: Annotated[Texts | None, control()] = None
    """
    The regions in which hosts may be created. Default: all regions. Example: `[eu-west-1,
    us-east-1]`.
    """

    left_out: ClassVar[frozenset[str]] = Document.left_out | {"region"}
    leading: ClassVar[tuple[str, ...]] = ("region", "regions", "creds")

    @model_validator(mode="after")
    def _named_by_type(self) -> Self:
        if not self.name:
            # Not said, so that it stands in no set of said fields; frozen is for everybody else.
            self.__dict__["name"] = self.type
        return self

    def to_canonical(self) -> dict[str, Any]:
        # The name may be any, so that it does not tell the type as that of other kinds does.
        canonical = {"type": self.type, **super().to_canonical()}
        if self.region is not None:
            canonical["regions"] = sorted({self.region, *canonical.get("regions", ())})
        return canonical

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.region is not None and self.regions is not None:
            yield Problem(
                "said-twice",
                ("region",),
                "`region` and `regions` are the same field.",
                "Keep `regions`.",
                at_key=True,
            )
        creds = self.credentials
        if creds is not None:
            for problem in creds.problems():
                yield problem.below("creds")
        yield from warn_in_clear(
            self.guarded_parts(),
            "Declare a `type: secret`, and write `${{ secrets.NAME }}` here.",
        )

    @property
    def credentials(self) -> Credentials | None:
        """Its `creds`, if it has such a field and says it."""
        creds = getattr(self, "creds", None)
        return creds if isinstance(creds, Credentials) else None

    def guarded_parts(self) -> Iterator[tuple[tuple[str | int, ...], Guarded | None]]:
        """The parts that may have a secret, with where they stand."""
        yield ("creds",), self.credentials


_TABLE = Path(__file__).with_name("backends.toml")
_BASES: Mapping[str, type[Model]] = {"Backend": Backend, "Credentials": Credentials, "Model": Model}
_TYPES: Mapping[str, Any] = {"text": Text, "texts": Texts, "flag": Flag, "by-key": dict[str, str]}


def __getattr__(name: str) -> type[Model]:
    """A model of the table, by its name or by what `type:` says; built when it is first needed."""
    for table, row in _rows().items():
        if name == table or name in row.get("types", ()):
            return _model(table)
    raise AttributeError(name)


@functools.cache
def _rows() -> dict[str, Any]:
    # Few configurations declare a backend, and each start would pay for the import.
    import tomllib

    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


@functools.cache
def _model(name: str) -> type[Model]:
    if name in _BASES:
        return _BASES[name]
    row = _rows()[name]
    base_name = row.get("base", "Backend")
    base = _model(base_name)
    about, types = row["about"], tuple(row.get("types", ()))
    fields: dict[str, Any] = {}
    if types:
        example = row.get("example") or _rows()[base_name]["example"]
        example = example.replace("TYPE", types[0])
        about = f"{about}\n\nExample:\n{textwrap.indent(example, '    ')}"
        names = ", or its former name ".join(f"`{one}`" for one in types)
        kind = Field(description=f"The kind of the document: {names}.")
        fields["type"] = Annotated[Literal[types], kind]
    facts = [control()] if issubclass(base, Backend) else []
    for field, said in row.get("fields", {}).items():
        fields[field] = _field(said, facts)
    return create_model(name, __base__=base, __module__=__name__, __doc__=about, **fields)


def _field(said: Mapping[str, Any], facts: Sequence[Facts]) -> Any:
    """A field of a model, as `create_model` takes it."""
    written = said.get("type", "text")
    read = Literal[tuple(written)] if isinstance(written, list) else _TYPES.get(written)
    read = _model(written) if read is None else read
    notes = [*facts, Field(description=" ".join(said["text"].split()))]
    if said.get("secret"):
        notes.append(SECRET)
    if "with" in said:
        notes.append(With(said["with"]))
    if said.get("required"):
        return Annotated[read, *notes]
    return (Annotated[read | None, *notes], None)


# Kubernetes and Slurm clusters: as hosts of a fleet, and as backends.


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

    tolerations: Annotated[tuple[Toleration, ...], *listed(Toleration)] | None = None
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
            *listed(str | KubernetesContext, short="name"),
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

    gpu_partitions: Annotated[tuple[SlurmGpus, ...], *listed(SlurmGpus)] | None = None
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

    clusters: Annotated[tuple[SlurmCluster, ...], *listed(SlurmCluster), control()]
    """
    The clusters. Example: `[{name: alps, hostname: login.alps.example.com, user: me, private_key:
    {path: ~/.ssh/slurm}}]`.
    """

    def guarded_parts(self) -> _Parts:
        for number, cluster in enumerate(self.clusters):
            yield ("clusters", number, "private_key"), cluster.private_key
