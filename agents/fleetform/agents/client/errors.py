"""
What can go wrong between a controller and a host's agent.

    SessionError
    ├── ConnectionLost     nobody answers, or the connection has ended; connect again
    ├── HelloRejected      the agent is another's, or listens to somebody newer
    ├── RequestRefused     the agent answered, and the answer is no
    └── ContentChanged     the file to be sent is not what its digest says

Providers stand above this room and turn these into errors of their contract.
"""

from __future__ import annotations

from fleetform.agents.protocol.messages import Rejected, Reply


class SessionError(Exception):
    """Base of what a session raises; the message is one sentence for people."""


class ConnectionLost(SessionError):
    """The call may have been carried out or not: only records tell, after a reconnect."""


class HelloRejected(SessionError):
    """The agent does not take us; `answer` says who it belongs to."""

    def __init__(self, answer: Rejected) -> None:
        super().__init__(answer.message or f"the agent rejects this controller: {answer.code}")
        self.answer = answer


class RequestRefused(SessionError):
    """Raised by the calls that return a value instead of the reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.message or f"the agent refuses the request: {reply.code}")
        self.reply = reply


class ContentChanged(SessionError):
    """The agent keeps what has this digest only, so that nothing has been stored."""
