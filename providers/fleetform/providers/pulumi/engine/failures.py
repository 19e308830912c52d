"""
What failures of the engine and of clouds mean, in one table.

Pulumi and its plugins report failures as text. A row names the kind by a pattern; the first row
that matches wins. A failure that is found without text has the last row of its kind. A kind says
what failed and what to do next, and which error of the contract the caller gets: some are tried
again, others need a person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from fleetform.providers.contract.errors import (
    CredentialsRefused,
    NoCapacity,
    OfferRefused,
    PermanentError,
    ProviderError,
    QuotaExceeded,
    StackLocked,
    StateLost,
    TemporaryError,
)
from fleetform.spec.extras import install_extra

__all__ = ["NO_CAPACITY_SECONDS", "Failure", "FailureKind", "error_of", "failure", "failure_of"]

WHY_CHARACTERS = 600
"""Of the engine's own words; a failed create may repeat all properties of the resource."""


class FailureKind(StrEnum):
    MISSING_CLI = "missing-cli"
    MISSING_PACKAGE = "missing-package"
    MISSING_PLUGIN = "missing-plugin"
    LOCKED = "locked"
    PENDING = "pending"
    UNPLANNED = "unplanned"
    PROTECTED = "protected"
    PASSPHRASE = "passphrase"  # noqa: S105 -- the name of a kind
    CREDENTIALS_EXPIRED = "credentials-expired"
    OTHER_ACCOUNT = "other-account"
    CREDENTIALS = "credentials"
    FORBIDDEN = "forbidden"
    QUOTA = "quota"
    NO_CAPACITY = "no-capacity"
    REGION = "region"
    THROTTLED = "throttled"
    GONE = "gone"
    CONFLICT = "conflict"
    INVALID = "invalid"
    UNREACHABLE = "unreachable"
    INTERRUPTED = "interrupted"
    NO_STACK = "no-stack"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """
    One failure: `where` is a resource or the stack, `why` the words of the engine or the cloud.

    `what` and `advice` are sentences without their end.
    """

    kind: FailureKind
    where: str
    what: str
    why: str = ""
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Failure:
        return cls(**{**value, "kind": FailureKind(value["kind"])})


@dataclass(frozen=True, slots=True)
class _Row:
    kind: FailureKind
    pattern: re.Pattern[str] | None
    what: str
    advice: str


def _row(kind: FailureKind, pattern: str | None, what: str, advice: str) -> _Row:
    compiled = None if pattern is None else re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return _Row(kind, compiled, what, advice)


_ROWS = (
    _row(
        FailureKind.MISSING_PLUGIN,
        r"no resource plugin '(?:pulumi-resource-)?(?P<plugin>[\w-]+)'|"
        r"could not (?:load|find) plugin.*?'?(?P<plugin2>[\w-]+)'?",
        "the Pulumi plugin {plugin} is not installed",
        "run `pulumi plugin install resource {plugin}`",
    ),
    _row(
        FailureKind.LOCKED,
        r"currently locked by .*?created by (?P<owner>\S+) \(pid (?P<pid>\d+)\) at (?P<at>\S+)",
        "{owner} (pid {pid}) has the stack locked since {at}",
        "wait until that process ends",
    ),
    _row(
        # The words are those of the trigger in `store/postgres/stacks`.
        FailureKind.LOCKED,
        r"fence \S+ is outdated",
        "another controller has taken over",
        "leave it to that one",
    ),
    _row(
        FailureKind.LOCKED,
        r"currently locked",
        "another process changes the stack",
        "wait until it ends",
    ),
    _row(
        FailureKind.PENDING,
        r"pending operations",
        "an earlier change was cut off, and it is not known which resources it created",
        "recover the stack first",
    ),
    _row(
        FailureKind.UNPLANNED,
        r"violates plan: (?P<detail>[^\n]*)|not allowed by the plan|"
        r"(?P<detail2>expected resource operations for \S+ but none were seen)",
        "the change is not the one that was previewed",
        "plan again and review the new plan",
    ),
    _row(
        FailureKind.PROTECTED,
        r"marked for protection|is protected|cannot be deleted\b.*protect",
        "the resource is protected from deletion",
        "remove the protection in a plan of its own, then plan the deletion",
    ),
    _row(
        FailureKind.PASSPHRASE,
        r"incorrect passphrase|passphrase must be set|failed to decrypt",
        "the passphrase of the environment does not open the secrets of the stack",
        "restore the passphrase file from a backup",
    ),
    _row(
        FailureKind.CREDENTIALS_EXPIRED,
        r"ExpiredToken|RequestExpired|token (?:has|is) expired|invalid_grant|"
        r"SSO session .* has expired",
        "the credentials of the cloud have expired",
        "sign in again and repeat the command",
    ),
    _row(
        FailureKind.OTHER_ACCOUNT,
        r"account ID not allowed: ?(?P<account>\d+); declared is (?P<declared>\d+)",
        "the credentials are of account {account}, and the configuration declares account {declared}",
        "use credentials of account {declared}, or correct `account`",
    ),
    _row(
        FailureKind.OTHER_ACCOUNT,
        r"account ID not allowed: ?(?P<account>\d+)",
        "the credentials belong to account {account}, and the fleet to another one",
        "use credentials of the fleet's account",
    ),
    _row(
        FailureKind.CREDENTIALS,
        r"InvalidClientTokenId|AuthFailure|SignatureDoesNotMatch|UnrecognizedClientException|"
        r"no valid credential sources|NoCredentialProviders|failed to refresh cached credentials|"
        r"could not find default credentials|Unable to locate credentials|Partial credentials found|"
        r"config profile \(.*?\) could not be found",
        "the cloud refuses the credentials",
        "set credentials in the environment of the command, such as `AWS_PROFILE`",
    ),
    _row(
        FailureKind.FORBIDDEN,
        r"UnauthorizedOperation|AccessDenied|not authorized to perform: ?(?P<action>[\w:*-]+)?|"
        r"PERMISSION_DENIED",
        "the account may not do this",
        "add the permission that the message names",
    ),
    _row(
        FailureKind.QUOTA,
        r"VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded|"
        r"(?:Volume|Address|VPC|SecurityGroup|PlacementGroup)\w*LimitExceeded|"
        r"Quota '?(?P<quota>[\w.-]+)'? exceeded|QUOTA_EXCEEDED",
        "a quota of the account is used up",
        "ask the cloud for a higher quota, or declare fewer hosts or another type",
    ),
    _row(
        FailureKind.NO_CAPACITY,
        r"Insufficient\w*Capacity|ReservationCapacityExceeded|SpotMaxPriceTooLow|ZONE_RESOURCE_POOL_EXHAUSTED|"
        r"does not have enough resources available|not supported in your requested Availability Zone",
        "the cloud has no capacity for this type in this place now",
        "the next offer is tried; declare more types, regions or zones",
    ),
    _row(
        FailureKind.REGION,
        r"Invalid AWS Region: ?(?P<region>[\w-]+)|invalid region|Unknown region",
        "there is no such region",
        "correct the region of the fleet",
    ),
    _row(
        FailureKind.THROTTLED,
        r"RequestLimitExceeded|Throttling|TooManyRequests|rateLimitExceeded",
        "the cloud refuses so many requests at a time",
        "it is tried again",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidVpcID\.NotFound.*?(?P<id>vpc-\w+)",
        "the VPC {id} does not exist in this region of the account",
        "correct `aws.vpc`, or leave it out for the default VPC",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidSubnetID\.NotFound.*?(?P<id>subnet-\w+)",
        "the subnet {id} does not exist in this region of the account",
        "correct `aws.subnet`, or leave it out for a default subnet",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidGroup(?:Id)?\.NotFound.*?(?P<id>sg-\w+)",
        "the security group {id} does not exist in this VPC",
        "correct `aws.security_groups`",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidAMIID\.\w+.*?(?P<id>ami-\w+)",
        "the image {id} does not exist in this region, or the account may not use it",
        "correct `aws.image`, or leave it out for the default image",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidZone\.NotFound|Invalid availability zone",
        "the region has no such availability zone",
        "correct `availability_zones` of the fleet, or `availability_zone` of the volume",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidCapacityReservationId\.NotFound",
        "the capacity reservation does not exist in this region of the account",
        "correct `reservation`",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidVolume\.NotFound",
        "the disk does not exist in this region of the account",
        "correct `volume_id`",
    ),
    _row(
        FailureKind.GONE,
        r"InvalidSnapshot\.NotFound",
        "the snapshot does not exist in this region of the account",
        "correct `aws.snapshot_id`",
    ),
    _row(
        FailureKind.GONE,
        r"Invalid IAM Instance Profile|NoSuchEntity\b.*?[Ii]nstance [Pp]rofile",
        "the instance profile does not exist in the account",
        "correct `aws.iam_instance_profile`",
    ),
    _row(
        FailureKind.GONE,
        r"ParameterNotFound",
        "Systems Manager has no such parameter in this region of the account",
        "correct `aws.image` of the fleet, or write the id of an image there",
    ),
    _row(
        FailureKind.GONE,
        r"NoSuchEntity|Invalid\w+\.NotFound|\bnotFound\b|does not exist",
        "something that the resource refers to does not exist",
        "correct the id, or create it again",
    ),
    _row(
        FailureKind.CONFLICT,
        r"\.Duplicate|already ?exists|IncorrectState|VolumeInUse|ZoneMismatch|DependencyViolation|"
        r"already attached",
        "the resource conflicts with one that exists",
        "see with `fleetform drift` what changed outside fleetform",
    ),
    _row(
        FailureKind.INVALID,
        r"Invalid value '(?P<type>[^']*)' for InstanceType|"
        r"supplied instance types do not exist: \[(?P<type2>[^\]]*)\]",
        "the region does not offer the instance type {type}",
        "correct `instance_types`, or name another region in `regions`",
    ),
    _row(
        FailureKind.INVALID,
        r"architecture .* does not match the architecture",
        "the image is for another processor architecture than the instance type",
        "write an image of that architecture as `aws.image`, or choose the type with `resources.cpu`",
    ),
    _row(
        FailureKind.INVALID,
        r"Invalid\w+\.(?:Malformed|Format)|Invalid(?:Parameter|Block)|MissingParameter|"
        r"ValidationError|api error Unsupported",
        "the cloud refuses a value",
        "correct the configuration",
    ),
    _row(
        FailureKind.UNREACHABLE,
        r"connection refused|no such host|i/o timeout|context deadline exceeded|dial tcp|EOF\b|"
        r"(?:connect to|timeout on|response from) (?:the )?(?:endpoint|proxy) URL",
        "the cloud or the state backend does not answer",
        "check the network; it is tried again",
    ),
    _row(
        FailureKind.NO_STACK,
        r"no stack named '?(?P<stack>[\w./-]+)'? found",
        "the state has no stack {stack}",
        "restore the state from a backup, or rebuild it",
    ),
    _row(
        FailureKind.MISSING_CLI,
        None,
        "the Pulumi CLI is not installed",
        "run `fleetform doctor --install-pulumi`, or put `pulumi` on PATH",
    ),
    _row(
        FailureKind.MISSING_PACKAGE,
        None,
        "the Pulumi library is not installed",
        install_extra("aws"),
    ),
    _row(
        FailureKind.INTERRUPTED,
        None,
        "the change was interrupted",
        "plan again: what was created is kept",
    ),
)

_SAID_BY_CLOUD = (
    re.compile(r"api error (\w[\w.]*): (.*?)(?:: provider=\S*)?$", re.MULTILINE),
    re.compile(
        r"An error occurred \((\w[\w.]*)\) when calling the \w+ operation(?: \([^)]*\))?: (.*)$",
        re.MULTILINE,
    ),
)
"""How Pulumi and boto pass on what AWS says: between names of calls, numbers of requests and of the resources that are known to fleetform."""

_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")

_COLOUR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")


def failure_of(text: str, *, where: str) -> Failure:
    """Read the words of the engine; `where` is the resource or the stack they are about."""
    text = _COLOUR.sub("", text).strip()
    for row in _ROWS:
        found = row.pattern.search(text) if row.pattern else None
        if found:
            # A group of a second spelling has the name with a digit.
            values = {name.rstrip("2"): value for name, value in found.groupdict().items() if value}
            filled = (_filled(row.what, values), _filled(row.advice, values))
            # What is wrong with the account is all in the sentence.
            why = "" if row.kind is FailureKind.OTHER_ACCOUNT else _short(text)
            return Failure(row.kind, where, filled[0], why, filled[1])
    return Failure(FailureKind.UNKNOWN, where, "the cloud or the engine refuses it", _short(text))


def failure(kind: FailureKind, *, where: str, why: str = "") -> Failure:
    """Return a failure that was found without the engine's words."""
    row = [row for row in _ROWS if row.kind is kind][-1]
    return Failure(kind, where, row.what, why, row.advice)


_PERMANENT: dict[FailureKind, type[PermanentError]] = {
    FailureKind.NO_STACK: StateLost,
    FailureKind.CREDENTIALS: CredentialsRefused,
    FailureKind.CREDENTIALS_EXPIRED: CredentialsRefused,
    FailureKind.OTHER_ACCOUNT: CredentialsRefused,
    FailureKind.QUOTA: QuotaExceeded,
}

NO_CAPACITY_SECONDS = 600.0
"""After which a refused offer is worth another try."""

_TEMPORARY: dict[FailureKind, tuple[type[TemporaryError], float]] = {
    FailureKind.LOCKED: (StackLocked, 10.0),
    FailureKind.NO_CAPACITY: (NoCapacity, NO_CAPACITY_SECONDS),
    FailureKind.THROTTLED: (TemporaryError, 30.0),
    FailureKind.UNREACHABLE: (TemporaryError, 10.0),
    FailureKind.INTERRUPTED: (TemporaryError, 1.0),
}
"""The error, and after how many seconds the same call is worth another try."""


def error_of(failure: Failure) -> ProviderError:
    """Return the error of the contract for a failure."""
    message = f"{failure.where}: {failure.what}" if failure.where else failure.what
    if failure.why:
        message = f"{message} ({failure.why})"
    error: ProviderError
    if failure.kind in _TEMPORARY:
        kind, delay_seconds = _TEMPORARY[failure.kind]
        error = kind(message, delay_seconds=delay_seconds)
    else:
        error = _PERMANENT.get(failure.kind, PermanentError)(message, advice=failure.advice)
    if isinstance(error, OfferRefused):
        error.reason = _refusal(failure)
    return error


_REFUSALS = {FailureKind.NO_CAPACITY: "no capacity", FailureKind.QUOTA: "quota used up"}


def _refusal(failure: Failure) -> str:
    """Write `no capacity (InsufficientInstanceCapacity)`: what failed, and the words by which it was recognised."""
    patterns = (row.pattern for row in _ROWS if row.kind is failure.kind and row.pattern)
    found = next((found for one in patterns if (found := one.search(failure.why))), None)
    return f"{_REFUSALS[failure.kind]} ({found[0]})" if found else _REFUSALS[failure.kind]


def _filled(template: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], "(unknown)"), template)


def _short(text: str) -> str:
    """Keep what the cloud says, or else the first lines as one; a long text is cut at its end."""
    said = next((found for one in _SAID_BY_CLOUD if (found := one.search(text))), None)
    line = " ".join((f"{said[1]}: {said[2]}" if said else text).split())
    line = _ENCODED.sub("", line)
    return line if len(line) <= WHY_CHARACTERS else f"{line[: WHY_CHARACTERS - 1]}…"
