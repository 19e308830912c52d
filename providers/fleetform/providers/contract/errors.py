"""
Failures of the world, split by what the caller does next.

    ProviderError
    ├── TemporaryError      try again after `delay_seconds`
    │   ├── RefusedForNow   the host itself says no; the connection stands
    │   ├── NameUnknown     the name of the host has no address
    │   ├── AgentMissing    the host has no agent of the environment yet
    │   ├── AnswerUnknown   an earlier call was cut off, and may have created the host
    │   ├── NoCapacity      the cloud has none of this type here now (also an OfferRefused)
    │   └── StackLocked     another process changes the same resources
    └── PermanentError      trying again does not help; a person must change something
        ├── OwnedElsewhere  the host belongs to another environment, which is named
        ├── SameMachine     another host of the environment is this machine
        ├── AgentFound      the host has the agent of another instance of the environment
        ├── AttachedElsewhere  an instance that no host of the environment is has the disk
        ├── HostGone        the host was created before and no longer exists
        ├── CredentialsRefused  the cloud does not accept them, or they are another account's
        ├── QuotaExceeded   the account may not have so much (also an OfferRefused)
        ├── StateLost       the engine has no state of resources that it created
        └── SignInRefused   the host does not let this account in
"""

from __future__ import annotations


class ProviderError(Exception):
    """Base of what a provider raises; the message is one sentence for people."""


class TemporaryError(ProviderError):
    """The same call may succeed later."""

    def __init__(self, message: str, *, delay_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.delay_seconds = delay_seconds


class RefusedForNow(TemporaryError):
    """A full disk, for instance: no reconnect follows after which rows are compared anew."""


class NameUnknown(TemporaryError):
    """A network that comes back may know it; most often the name is misspelt, so no step waits for it."""


class AgentMissing(TemporaryError):
    """The host answers, and no agent was ever set up there, so it has no jobs."""


class OfferRefused(ProviderError):
    """
    A cloud does not create a host by this offer; another offer may have some.

    `reason` is why, in a few words. `exists`: the host was created and must be released, because others of
    its batch were refused and a batch of a cluster is whole, or because it could not have its address.
    """

    reason = ""
    exists = False


class NoCapacity(OfferRefused, TemporaryError):
    """A cloud cannot create a host of this type in this place at the moment."""


class StackLocked(TemporaryError):
    """The message names the process that changes the stack."""


class AnswerUnknown(TemporaryError):
    """The message says until when the cloud is given time to list what it may have created."""


class PermanentError(ProviderError):
    """The same call will fail again. `advice` says what to do next."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def with_advice(problem: Exception) -> str:
    """Write an error in one line, for places without a line of their own for the advice."""
    advice = getattr(problem, "advice", "")
    return f"{problem}; {advice}" if advice else str(problem)


class SameMachine(PermanentError):
    """Two names lead to one machine, whose CPUs and GPUs would be given to jobs twice."""


class AgentFound(PermanentError):
    """`uid` is that of the instance whose agent is in the folder of this one."""

    def __init__(self, message: str, *, uid: str, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.uid = uid


class CredentialsRefused(PermanentError):
    """Wrong or expired credentials, or those of an account that is not the fleet's."""


class QuotaExceeded(OfferRefused, PermanentError):
    """More hosts of this kind need a higher quota, which the cloud grants on request."""


class AttachedElsewhere(PermanentError):
    """A person attached the disk to another instance; it is theirs to detach."""


class HostGone(PermanentError):
    """The host was created before and no longer exists: its uid is used up."""


class StateLost(PermanentError):
    """The resources may exist; the state is rebuilt from what the cloud lists."""


class SignInRefused(PermanentError):
    """The host counts such attempts, and may ban an address that makes many (`fail2ban`)."""


class OwnedElsewhere(PermanentError):
    """Another environment, or another ledger of this one, owns the host."""

    def __init__(self, message: str, *, owner: str, ledger_id: str = "", epoch: int = 0) -> None:
        super().__init__(message)
        self.owner = owner
        self.ledger_id = ledger_id
        self.epoch = epoch
