"""Words of engines and clouds become failures that say what to do next."""

from __future__ import annotations

import pytest
from botocore import exceptions

from fleetform.providers.contract.errors import (
    CredentialsRefused,
    NoCapacity,
    PermanentError,
    QuotaExceeded,
    StackLocked,
    TemporaryError,
)
from fleetform.providers.pulumi.engine.failures import (
    _ROWS,
    Failure,
    FailureKind,
    error_of,
    failure,
    failure_of,
)

WORDS = {
    FailureKind.MISSING_PLUGIN: "error: no resource plugin 'pulumi-resource-aws' found in the "
    "workspace at version v7.51.0 or on your $PATH",
    FailureKind.LOCKED: "error: the stack is currently locked by 1 lock(s). Either wait for the "
    "other process(es) to end or delete the lock file with `pulumi cancel`.\n"
    "  file:///s/x.json: created by ann@box (pid 4711) at 2026-01-02T03:04:05Z",
    FailureKind.PENDING: "the current deployment has 1 resource(s) with pending operations",
    FailureKind.UNPLANNED: "resource urn::a violates plan: properties changed: +-size",
    FailureKind.PROTECTED: "resource cannot be deleted\nbecause it is protected",
    FailureKind.PASSPHRASE: "constructing secrets manager: incorrect passphrase",
    FailureKind.CREDENTIALS_EXPIRED: "api error ExpiredToken: The security token is expired",
    FailureKind.OTHER_ACCOUNT: "AWS account ID not allowed: 123456789012",
    FailureKind.CREDENTIALS: "no valid credential sources for Pulumi AWS found",
    FailureKind.FORBIDDEN: "api error UnauthorizedOperation: You are not authorized to perform: "
    "ec2:RunInstances",
    FailureKind.QUOTA: "VcpuLimitExceeded: You have requested more vCPU capacity than your limit",
    FailureKind.NO_CAPACITY: "InsufficientInstanceCapacity: We currently do not have sufficient",
    FailureKind.REGION: "Invalid AWS Region: eu-wset-1",
    FailureKind.THROTTLED: "api error RequestLimitExceeded: Request limit exceeded.",
    FailureKind.GONE: "InvalidVpcID.NotFound: The vpc ID 'vpc-1' does not exist",
    FailureKind.CONFLICT: "InvalidGroup.Duplicate: the group already exists",
    FailureKind.INVALID: "api error InvalidKeyPair.Format: Key is not in valid format",
    FailureKind.UNREACHABLE: "dial tcp 127.0.0.1:1: connect: connection refused",
    FailureKind.NO_STACK: "no stack named 'one' found",
}

ERRORS = {
    FailureKind.LOCKED: StackLocked,
    FailureKind.NO_CAPACITY: NoCapacity,
    FailureKind.THROTTLED: TemporaryError,
    FailureKind.UNREACHABLE: TemporaryError,
    FailureKind.INTERRUPTED: TemporaryError,
    FailureKind.CREDENTIALS: CredentialsRefused,
    FailureKind.CREDENTIALS_EXPIRED: CredentialsRefused,
    FailureKind.OTHER_ACCOUNT: CredentialsRefused,
    FailureKind.QUOTA: QuotaExceeded,
}


WORDLESS = [row.kind for row in _ROWS if row.pattern is None]


def test_every_kind_has_a_row():
    """Or it is `unknown`; and each row with a pattern has an example."""
    assert {row.kind for row in _ROWS} | {FailureKind.UNKNOWN} == set(FailureKind)
    assert {row.kind for row in _ROWS if row.pattern} == set(WORDS)


@pytest.mark.parametrize(
    "kind", [*WORDLESS, FailureKind.LOCKED, FailureKind.PENDING, FailureKind.UNPLANNED]
)
def test_a_failure_without_words_has_a_whole_sentence(kind):
    """The engine was not asked, so nothing fills a place in it."""
    found = failure(kind, where="i-1", why="a reason")
    assert found.what
    assert found.advice
    assert "{" not in found.what + found.advice
    assert found.why == "a reason"


@pytest.mark.parametrize("kind", WORDS)
def test_words_have_a_kind(kind):
    """The sentence is ours, the reason is theirs, and an advice follows."""
    found = failure_of(f"<{{%fg 1%}}>{WORDS[kind]}<{{%reset%}}>", where="i-1")
    assert found.kind is kind
    assert found.where == "i-1"
    assert found.what
    assert found.advice
    assert "{" not in found.what + found.advice + found.why
    assert Failure.from_json(found.to_json()) == found


def test_another_account_is_named_beside_the_declared_one():
    """Who has several accounts sees which credentials are in force, and which are needed."""
    problem = "account ID not allowed: 999999999999; declared is 123456789012"
    found = failure_of(problem, where="us-east-1")
    assert found.what == (
        "the credentials are of account 999999999999, and the configuration declares account 123456789012"
    )
    assert found.advice == "use credentials of account 123456789012, or correct `account`"


@pytest.mark.parametrize("kind", [*WORDS, *WORDLESS])
def test_a_kind_has_an_error(kind):
    """Those that may pass are temporary, all others need a person."""
    found = failure_of(WORDS[kind], where="i-1") if kind in WORDS else failure(kind, where="i-1")
    error = error_of(found)
    assert isinstance(error, ERRORS.get(kind, PermanentError))
    assert str(error).startswith("i-1: ")


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (exceptions.NoCredentialsError(), FailureKind.CREDENTIALS),
        (exceptions.PartialCredentialsError(provider="env", cred_var="x"), FailureKind.CREDENTIALS),
        (exceptions.ProfileNotFound(profile="gpu"), FailureKind.CREDENTIALS),
        (exceptions.UnauthorizedSSOTokenError(), FailureKind.CREDENTIALS_EXPIRED),
        (exceptions.EndpointConnectionError(endpoint_url="u"), FailureKind.UNREACHABLE),
        (exceptions.ConnectTimeoutError(endpoint_url="u"), FailureKind.UNREACHABLE),
        (exceptions.ReadTimeoutError(endpoint_url="u"), FailureKind.UNREACHABLE),
        (exceptions.ConnectionClosedError(endpoint_url="u"), FailureKind.UNREACHABLE),
        (exceptions.ProxyConnectionError(proxy_url="u"), FailureKind.UNREACHABLE),
    ],
)
def test_the_library_of_aws_has_words_of_its_own(problem, kind):
    """They are of what happens before AWS answers."""
    assert failure_of(str(problem), where="us-east-1").kind is kind


@pytest.mark.parametrize(
    ("words", "what", "advice"),
    [
        ("InvalidVpcID.NotFound: The vpc ID 'vpc-1' does not exist", "the VPC vpc-1", "`aws.vpc`"),
        ("InvalidSubnetID.NotFound: The subnet ID 'subnet-1' does not exist", "subnet-1", "`aws.subnet`"),
        ("InvalidGroup.NotFound: The security group 'sg-1' does not exist in VPC 'vpc-1'", "sg-1", "`aws.security_groups`"),
        ("InvalidAMIID.NotFound: The image id '[ami-1]' does not exist", "image ami-1", "`aws.image`"),
        ("InvalidZone.NotFound: The zone 'us-east-1z' does not exist.", "no such availability zone", "`availability_zone`"),
        ("InvalidParameterValue: Invalid availability zone: [us-east-1z]", "zone", "`availability_zones`"),
        ("InvalidCapacityReservationId.NotFound: 'cr-1' does not exist", "reservation", "`reservation`"),
        ("InvalidVolume.NotFound: The volume 'vol-1' does not exist.", "the disk", "`volume_id`"),
        ("InvalidSnapshot.NotFound: The snapshot 'snap-1' does not exist.", "snapshot", "`aws.snapshot_id`"),
        ("InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", "profile", "`aws.iam_instance_profile`"),
        ("NoSuchEntity: Instance profile training not found", "profile", "`aws.iam_instance_profile`"),
        ("ParameterNotFound: parameter /vision/other not found", "parameter", "`aws.image`"),
        ("InvalidInstanceType: The following supplied instance types do not exist: [g9.large]", "type g9.large", "`instance_types`"),
        ("InvalidParameterValue: Invalid value 'g9.large' for InstanceType.", "type g9.large", "`instance_types`"),
        ("InvalidParameterValue: The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' of the specified AMI.", "architecture", "`aws.image`"),
    ],
)  # fmt: skip
def test_the_advice_names_the_field(words, what, advice):
    """What AWS refuses is a value that a document has."""
    found = failure_of(f"creating EC2 Instance: api error {words}", where="gpus-0")
    assert what in found.what
    assert advice in found.advice


@pytest.mark.parametrize(
    "text",
    [
        (
            "sdk-v2/provider2.go:572: sdk.helper_schema: creating EC2 Instance (u-4711): operation error EC2: RunInstances,"
            " https response error StatusCode: 400, RequestID: 8c1f, api error UnauthorizedOperation: You are not authorized."
            " Encoded authorization failure message: bm90IGZvciB5b3U: provider=aws@7.51.0\nerror: 1 error occurred: u-4711"
        ),
        (
            "An error occurred (UnauthorizedOperation) when calling the RunInstances operation (reached max retries: 4):"
            " You are not authorized."
        ),
    ],
)
def test_only_what_the_cloud_says_is_passed_on(text):
    """Without numbers of requests, names of calls and uids."""
    assert failure_of(text, where="gpus-0").why == "UnauthorizedOperation: You are not authorized."


def test_names_are_filled_in():
    """The plugin to install, and who has the lock."""
    plugin = failure_of(WORDS[FailureKind.MISSING_PLUGIN], where="s")
    assert plugin.advice == "run `pulumi plugin install resource aws`"
    lock = failure_of(WORDS[FailureKind.LOCKED], where="s")
    assert lock.what == "ann@box (pid 4711) has the stack locked since 2026-01-02T03:04:05Z"


def test_unknown_words_are_passed_on():
    """Cut, so that one failure is one line."""
    found = failure_of("Something\n  new\n" * 200, where="i-1")
    assert found.kind is FailureKind.UNKNOWN
    assert found.why.startswith("Something new Something")
    assert len(found.why) == 600
