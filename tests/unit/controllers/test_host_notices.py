"""What is said of hosts, and how often."""

from __future__ import annotations

from fleetform.controllers.host_notices import HostNotices
from fleetform.model.instance import Instance, InstanceState

HOSTS = [
    Instance(f"u{number}", f"gpus-{number}", "gpus", number, InstanceState.PROVISIONING)
    for number in range(2)
]


class Said:
    """Keeps the notices."""

    def __init__(self):
        self.lines = []

    def notice(self, text, **_facts):
        self.lines.append(text)


def test_a_call_without_an_answer_is_said_once_of_its_batch():
    """Its text names all hosts of the batch, so no line begins with one of them; another problem of a host is its own."""
    said = Said()
    notices = HostNotices(said)
    problem = "the call that creates gpus-0, gpus-1 was cut off: waiting until 2026-11-28T06:10:00Z"
    for host in HOSTS:
        notices.unanswered(host, problem)
        notices.problem(host, problem)
    notices.problem(HOSTS[0], "port 22 refuses connections")
    assert said.lines == [f"fleet gpus: {problem}", "host gpus-0: port 22 refuses connections"]
