"""Running jobs as hosts of OpenSSH: their names, and the options that lead to them."""

from __future__ import annotations

import pytest

from fleetform.views.ssh_command import JobName, JobServer, config_text, job_words, parse_job_name

SERVER = JobServer(
    ["/opt/my python", "proxy", "-C", "/data/50%"], "fleetform-1", "/state/known hosts"
)


@pytest.mark.parametrize(
    ("text", "domain", "name"),
    [
        ("train", "fleetform", JobName("train")),
        ("train.fleetform", "fleetform", JobName("train")),
        ("train.3.fleetform", "fleetform", JobName("train", 3)),
        ("sweep[lr=0.1].fleetform", "fleetform", JobName("sweep[lr=0.1]")),
        ("sweep[lr=0.1]", "fleetform", JobName("sweep[lr=0.1]")),
        ("sweep[lr=0.1].2.lab", "lab", JobName("sweep[lr=0.1]", 2)),
        ("train.lab", "fleetform", JobName("train.lab")),
    ],
)
def test_names_of_jobs(text, domain, name) -> None:
    """A rank follows the run, and brackets belong to the element."""
    assert parse_job_name(text, domain) == name


def test_the_configuration_quotes_what_openssh_reads() -> None:
    """Percent signs, spaces, and the brackets of an element in the shell that starts the proxy."""
    text = config_text(SERVER, "lab", "lab")
    assert text.startswith("# Running jobs of the environment lab.\nHost *.lab\n")
    assert "  ProxyCommand '/opt/my python' proxy -C /data/50%% '%n'\n" in text
    assert '  UserKnownHostsFile "/state/known hosts"\n' in text


def test_the_command_line_names_the_rank() -> None:
    """Several words are quoted for the shell of the job; one is read by it."""
    words = job_words(SERVER, JobName("train", 2), ["echo", "a b"])
    assert words[-3:] == ["--", "train.2.fleetform", "echo 'a b'"]
    assert job_words(SERVER, JobName("train"), ["a | b"])[-2:] == ["train.fleetform", "a | b"]
