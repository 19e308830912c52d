"""
`environment.yaml`: which environment a tree is, and what it allows without asking twice.

Without it nothing can be planned: every resource belongs to the environment's uid, and a tree
that does not say whose it is could delete what belongs to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fleetform.spec.bounds import PATCHES_MAX, REASON_MAX, WINDOWS_MAX
from fleetform.spec.field_facts import RECORDED, control, default, identity, unit
from fleetform.spec.kinds import ADOPTABLE, KINDS, RELEASABLE
from fleetform.spec.kinds.base import Flag, Model, Name, Whole, add_spellings, refuse, storable
from fleetform.spec.kinds.resources import Duration
from fleetform.spec.kinds.schedules import Cron, Moment, never_ends, window
from fleetform.spec.names import EXPRESSION_MARK, Address, is_uid, parse_address
from fleetform.spec.quantities.ranges import shown, unfit

Scalar = str | int | float | bool

# What `interpolate` reads behind `values.`.
_VALUE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def _check_uid(value: str | None, info: ValidationInfo) -> str | None:
    is_abstract = info.data.get("abstract", False)
    if value is None:
        if is_abstract:
            return None
        raise refuse(
            "missing-field",
            "`uid` is missing.",
            "Run `fleetform init`, which writes one; it is committed and never changed. A base that is never applied has `abstract: true` instead.",
        )
    if is_abstract:
        raise refuse(
            "contradiction",
            "An abstract environment has no uid, because it has no resources.",
            "Remove one of the two.",
        )
    if is_uid(value):
        return value
    raise refuse(
        "bad-uid",
        f"{shown(value)} cannot be an environment's uid.",
        "It is written by `fleetform init`, and never changed: 4 to 64 lower-case letters, digits and dashes.",
    )


def _values(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise refuse("wrong-type", str(unfit(value, "a mapping, such as `{bucket: s3://lab}`")))
    for name, item in value.items():
        if not _VALUE_NAME.fullmatch(name):
            raise refuse(
                "bad-name",
                f"{shown(name)} cannot be the name of a value.",
                "Use letters, digits, `_` and `-`, with a letter or `_` in front.",
            )
        if not isinstance(item, Scalar):
            raise refuse(
                "wrong-type",
                f"The value `{name}`: {unfit(item, 'a string, a number or a boolean')}",
            )
        if isinstance(item, str) and EXPRESSION_MARK in item:
            raise refuse(
                "bad-value",
                f"The value `{name}` is filled in unchanged, so `{EXPRESSION_MARK}` in it has no effect.",
                "Write the expression next to the reference to the value.",
            )
        if isinstance(item, str):
            storable(item)
    return value


def _target(value: str) -> str:
    kind, slash, name = value.partition("/")
    if kind and slash and name:
        return value
    raise refuse(
        "bad-value",
        f"{shown(value)} does not name any documents.",
        "Write kind and name: `run/train`, `fleet/gpu-*`.",
    )


def _steps(value: Any) -> Any:
    # What a step says is read where its place is known (`overlay.operations`).
    if isinstance(value, list) and value:
        return tuple(value)
    raise refuse(
        "bad-patch",
        "A patch is a list of steps.",
        "Write `[{op: replace, path: /nodes, value: 2}]`.",
    )


_STEPS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "op": {
                "description": "The operation. `add`: set a field, or insert into a list. `remove`: remove the value. `replace`: replace the value. `move`: move the value from `from`. `copy`: copy the value from `from`. `test`: fail unless the value is equal.",
                "enum": ["add", "remove", "replace", "move", "copy", "test"],
            },
            "path": {"description": "Where: `/commands/0`, `/env/LR`.", "type": "string"},
            "from": {"description": "The source of `move` and `copy`.", "type": "string"},
            "value": {"description": "What, of `add`, `replace` and `test`."},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    },
}


WINDOW_SECONDS_MAX = 366 * 86_400


def _timezone(value: str) -> str:
    # Few trees have windows, and each start would pay for the import.
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise refuse(
            "bad-value",
            f"{shown(value)} is not a known time zone.",
            "Write a name of the IANA database: `Europe/Berlin`, `UTC`.",
        ) from None
    return value


class PatchDocument(Model):
    """
    A change to documents of the base or of this environment, by exactly one of `merge`, `patch`,
    `file` and `delete`.
    """

    target: Annotated[str, AfterValidator(_target)]
    """
    The documents to change: kind and name, where `*` matches any characters. A `type:` such as
    `task` may replace the kind. Example: `run/train`, `fleet/gpu-*`.
    """

    merge: dict[str, Any] | None = None
    """
    Fields that replace those of the document (RFC 7386): mappings are merged, null removes a field,
    and lists are replaced. Variables of `env` are merged by name. Example: `{nodes: 4, resources:
    {gpu: H100:8}}`.
    """

    patch: (
        Annotated[
            tuple[dict[str, Any], ...],
            BeforeValidator(_steps),
            WithJsonSchema(_STEPS_SCHEMA),
        ]
        | None
    ) = None
    """
    Operations that are applied in order, all or none: `add`, `remove`, `replace`, `move`, `copy`
    and `test` (RFC 6902). Example: `[{op: add, path: /commands/-, value: sync}]`.
    """

    file: Annotated[str, Field(min_length=1)] | None = None
    """
    A file of the configuration that contains the fields of `merge` (a mapping) or the operations of
    `patch` (a list). It is not read as a document. Example: `patches/train.yaml`.
    """

    delete: Literal[True] | None = None
    """Whether to remove the documents from this environment. Example: `true`."""

    @model_validator(mode="after")
    def _check_one_way(self) -> Self:
        ways = [
            name for name in ("merge", "patch", "file", "delete") if getattr(self, name) is not None
        ]
        if len(ways) == 1:
            return self
        said = " and ".join(f"`{way}`" for way in ways) or "nothing"
        raise refuse(
            "bad-patch",
            f"The entry says {said}, but needs exactly one of these fields.",
            "Write one of `merge`, `patch`, `file`, `delete`; further ones in entries of their own.",
        )


def _resource(value: Any) -> Any:
    """The address of one resource in its one spelling: `run/sweep[batch=8,lr=0.1]`."""
    if not isinstance(value, str):
        raise refuse("wrong-type", str(unfit(value, "an address, such as `run/train`")))
    try:
        address = parse_address(value)
    except ValueError as exc:
        raise refuse("bad-value", str(exc), "Write kind and name: `run/train`.") from exc
    if address.kind not in RELEASABLE:
        raise _bad_kind(value, address)
    if address.is_element and address.kind != "run":
        raise refuse("bad-value", f"{shown(value)}: only runs have elements.")
    if any(low != high for low, high in address.indices) or len(address.indices) > 1:
        raise refuse(
            "bad-value",
            f"{shown(value)} names several elements, but exactly one is expected.",
            f"Name one, or `run/{address.name}` for all of them.",
        )
    return str(address)


def _bad_kind(value: str, address: Address) -> PydanticCustomError:
    if not address.kind:
        return refuse(
            "bad-value",
            f"{shown(value)} does not name its kind.",
            f"Write for example `run/{address.name}`.",
        )
    if address.kind in KINDS and KINDS[address.kind].name == "run":
        return refuse(
            "bad-value",
            f"{shown(value)}: the kind of tasks, services and dev environments is `run`.",
            f"Write `run/{str(address).partition('/')[2]}`.",
        )
    return refuse(
        "bad-value",
        f"{shown(value)}: only {_plurals(RELEASABLE)} can be named here.",
        "For other kinds, change the document only.",
    )


def _imported(value: str) -> str:
    kind = value.partition("/")[0]
    if kind not in ADOPTABLE:
        raise refuse(
            "bad-value",
            f"{shown(value)}: {kind}s cannot be adopted.",
            f"Import {_plurals(ADOPTABLE)}; a {kind} that the ledger knows by another name is `moved:`.",
        )
    return value


def _plurals(kinds: Iterable[str]) -> str:
    *some, last = (f"{kind}s" for kind in kinds)
    return f"{', '.join(some)} and {last}"


_Resource = Annotated[
    str,
    BeforeValidator(_resource),
    WithJsonSchema(
        {"type": "string", "pattern": r"^(fleet|run|volume)/[a-z][a-z0-9-]{1,40}(\[.+\])?$"}
    ),
]


class MovedDocument(Model):
    """A rename of a resource."""

    from_: Annotated[_Resource, Field(alias="from")]
    """
    The old kind and name. The name of a sweep or an array means all its elements. Example:
    `run/train`, `run/sweep[lr=0.1]`.
    """

    to: _Resource
    """The new kind and name. Example: `run/pretrain`."""

    @model_validator(mode="before")
    @classmethod
    def _check_pair(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return value
        raise refuse(
            "wrong-type",
            f"{shown(value)} needs two names: `from` and `to`.",
            "Write `{from: run/train, to: run/pretrain}`.",
        )

    @model_validator(mode="after")
    def _check_ends(self) -> Self:
        if self.from_ == self.to:
            raise refuse("contradiction", f"{shown(self.to)} is its own name.", "Remove the entry.")
        if self.from_.partition("/")[0] != self.to.partition("/")[0]:
            raise refuse(
                "contradiction",
                f"{shown(self.from_)} cannot become {shown(self.to)}: that is of another kind.",
                "Remove the entry. The plan then deletes the one and creates the other.",
            )
        return self


def _few(value: tuple[PatchDocument, ...]) -> tuple[PatchDocument, ...]:
    if len(value) <= PATCHES_MAX:
        return value
    raise refuse(
        "bad-value",
        f"There are {len(value)} patches; the most is {PATCHES_MAX}.",
        "Use one patch or a profile for fields that many documents share.",
    )


class FreezeDocument(Model):
    """
    A period in which plans are blocked: once from `begin` to `end`, or repeatedly by `cron` and
    `duration`.
    """

    model_config = ConfigDict(
        json_schema_extra=lambda schema: add_spellings(
            schema, from_="begin", to="end", for_="duration"
        )
    )

    begin: Moment | None = None
    """
    The begin of a single period, with its time zone; `from` is the same field. Example:
    `2026-12-20T00:00Z`.
    """

    end: Moment | None = None
    """
    The end of a single period, with its time zone; `to` is the same field. Example:
    `2027-01-02T00:00Z`.
    """

    cron: Cron | None = None
    """
    The begin of a repeated period: minute, hour, day of the month, month and weekday. Example: `0
    18 * * fri`.
    """

    duration: Annotated[Duration, Field(ge=1, le=WINDOW_SECONDS_MAX)] | None = None
    """The length of a repeated period; `for` is the same field. Example: `60h`."""

    timezone: Annotated[str, AfterValidator(_timezone)] | None = None
    """The time zone of `cron`. Default: UTC. Example: `Europe/Berlin`."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX), AfterValidator(storable)]
    """The reason, shown with each blocked plan. Example: `no one is on call`."""

    only: Literal["all", "destructive"] | None = None
    """
    Which changes are blocked. Default: `all`. `all`: every change. `destructive`: changes that
    delete resources or end running work. Example: `destructive`.
    """

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, value: Any) -> Any:
        return window(value)

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        once = self.begin is not None and self.end is not None
        again = self.cron is not None and self.duration is not None
        parts = (self.begin, self.end, self.cron, self.duration)
        if once == again or sum(part is not None for part in parts) != 2:
            raise refuse(
                "contradiction",
                "A window has `from` and `to`, or `cron` and `for`, but not fields of both pairs.",
                "Write `{from: 2026-12-20T00:00Z, to: 2027-01-02T00:00Z, reason: holidays}`, or"
                ' `{cron: "0 18 * * fri", for: 60h, reason: weekend}`.',
            )
        if once and (self.begin or 0) >= (self.end or 0):
            raise refuse("contradiction", "It ends before it begins.", "Swap the two.")
        if once and self.timezone is not None:
            raise refuse("contradiction", "`from` and `to` contain their time zone.", "Remove it.")
        if again and never_ends(self.cron or "", self.duration or 0, self.timezone or "UTC"):
            raise refuse(
                "contradiction",
                "It begins again before it has ended, and so never ends.",
                "Make it shorter, or let it begin less often.",
            )
        return self


def _few_windows(value: tuple[FreezeDocument, ...]) -> tuple[FreezeDocument, ...]:
    if len(value) <= WINDOWS_MAX:
        return value
    raise refuse(
        "bad-value", f"There are {len(value)} windows, and {WINDOWS_MAX} are read at most."
    )


class RulesDocument(Model):
    """Rules for plans: what may be deleted, and when plans are blocked."""

    allow_destroy: Annotated[Flag | None, default(False)] = None
    """
    Whether plans may delete resources and end running work without `--allow-destroy`. Example:
    `true`.
    """

    delete_percent: Annotated[Whole, Field(ge=0, le=100), unit("percent"), default(10)] | None = (
        None
    )
    """
    The largest share of the resources of one kind that one plan may delete, in percent. The larger
    of `delete_percent` and `delete_count` applies. Example: `10`.
    """

    delete_count: Annotated[Whole, Field(ge=0), default(5)] | None = None
    """
    The largest number of resources of one kind that one plan may delete. The larger of
    `delete_percent` and `delete_count` applies. Example: `5`.
    """

    freeze: Annotated[tuple[FreezeDocument, ...], AfterValidator(_few_windows)] | None = None
    """
    Freeze windows: periods in which plans are blocked. Runs that were submitted before continue. A
    plan is judged by the windows of the last applied configuration. Example: `[{cron: "0 18 * *
    fri", for: 60h, timezone: Europe/Berlin, reason: no one is on call}]`.
    """


class GrantsDocument(Model):
    """Permissions of the runs of the environment. Each is denied unless it is set."""

    root: Annotated[Flag | None, default(False)] = None
    """
    Whether jobs may run as root on hosts over SSH, as fleets with `run_as: root` ask for. Example:
    `true`.
    """


class EnvironmentDocument(Model):
    """
    The identity and the rules of an environment. One file, `environment.yaml`, at the top of the
    configuration.

    Example:
        type: environment
        name: local
        uid: 0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77
    """

    type: Literal["environment"]
    """The kind of the document: `environment`."""

    name: Annotated[Name, RECORDED]
    """The name of the environment, for people. Example: `local`."""

    abstract: Annotated[Flag | None, control("spec.tree", default=False)] = None
    """
    Whether this is only a base that other environments extend: it has no `uid` and no plans.
    Example: `false`.
    """

    uid: Annotated[
        str | None, Field(validate_default=True), AfterValidator(_check_uid), identity("store")
    ] = None
    """
    The unique id with which all resources of the environment are marked. `fleetform init` writes
    it; commit it and never change it, because another uid is another environment. Example:
    `0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77`.
    """

    rules: Annotated[RulesDocument | None, control("plan")] = None
    """
    Rules for plans: what may be deleted, and when plans are blocked. Example: `{allow_destroy:
    true}`.
    """

    grants: Annotated[GrantsDocument | None, control("plan")] = None
    """
    What runs are permitted beyond their own account. An environment does not inherit it from its
    base. Example: `{root: true}`.
    """

    extends: Annotated[str, Field(min_length=1), control("spec.overlay")] | None = None
    """
    The folder of the base, relative to this folder and in the same repository. Its documents,
    `rules`, `values` and `patches` apply to this environment too. Example: `../base`.
    """

    values: (
        Annotated[
            dict[str, Scalar],
            BeforeValidator(_values, json_schema_input_type=dict[str, Scalar]),
            control("spec.overlay"),
        ]
        | None
    ) = None
    """
    Values that documents, also those of the base, read as `${{ values.NAME }}`. A value of this
    environment outranks the value of the base. Example: `{bucket: s3://lab, epochs: 20}`.
    """

    moved: Annotated[tuple[MovedDocument, ...] | None, control("plan")] = None
    """
    Renames of resources: a renamed resource is neither created again nor re-run. Entries may stay
    after they were applied. Those of a base apply to the base only. Example: `[{from: run/train,
    to: run/pretrain}]`.
    """

    removed: Annotated[tuple[_Resource, ...] | None, control("plan")] = None
    """
    Resources, no longer declared, that fleetform stops managing; their data and hosts are left as
    they are. Those of a base apply to the base only. Example: `[fleet/old, volume/scratch]`.
    """

    imports: Annotated[
        tuple[Annotated[_Resource, AfterValidator(_imported)], ...] | None,
        Field(alias="import"),
        control("plan"),
    ] = None
    """
    Declared volumes and fleets that may already exist and are adopted as they are. Without an
    entry, an existing volume or host is not adopted. Those of a base apply to the base only.
    Example: `[volume/data]`.
    """

    patches: (
        Annotated[tuple[PatchDocument, ...], AfterValidator(_few), control("spec.overlay")] | None
    ) = None
    """
    Changes to documents of the base and of this environment, in order. A patch that matches no
    document is an error. Example: `[{target: run/train, merge: {nodes: 4}}]`.
    """

    @model_validator(mode="after")
    def _check_abstract(self) -> Self:
        said = [
            word
            for word, value in (
                ("moved", self.moved),
                ("removed", self.removed),
                ("import", self.imports),
            )
            if value is not None
        ]
        if self.abstract and said:
            raise refuse(
                "contradiction",
                f"An abstract environment has no `{said[0]}`, because it has no resources.",
                "Write it into the environments that extend this one.",
            )
        return self
