"""How the user's own OpenSSH reaches an instance of a cloud, and what is said where it cannot."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from fleetform.app.host_ssh import reached_over_ssh
from fleetform.app.problems import HostProblem
from fleetform.views.ssh_command import ssh_words
from unit.views.rows import instance

CREATED = {"id": "i-1", "hostname": "192.0.2.1", "proxy_jump": {"hostname": "gate", "user": "me"}}


def host(**more):
    return instance(0, provider="aws", endpoint=CREATED, host_key="ssh-ed25519 AAAA", **more)


@pytest.fixture
def workspace(tmp_path):
    backend = SimpleNamespace(stacks=lambda _uid: None)
    return SimpleNamespace(
        state=tmp_path, environment=SimpleNamespace(uid="e"), backend=lambda: backend
    )


@pytest.fixture
def key(workspace):
    path = workspace.state / "environments/e/pulumi/id_ed25519"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def test_an_instance_is_reached_as_the_controller_reaches_it(workspace, key):
    """With the account, the key and the jump host, with its pinned host key, and without the user's own configuration."""
    found = reached_over_ssh(workspace, host())
    words = ssh_words(found, home="/home/me", config="/c", known_hosts="/k")
    assert words == [
        "ssh", "-l", "fleetform", "-i", str(key), "-o", "IdentitiesOnly=yes", "-F", "none",
        "-J", "me@gate", "-o", "HostKeyAlias=fleetform-i0", "-o", 'UserKnownHostsFile="/k"',
        "-o", "StrictHostKeyChecking=yes", "--", "192.0.2.1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"endpoint": {}, "host_key": ""}, "it is not created yet"),
        ({"host_key": ""}, "its host key is not known yet"),
    ],
)
def test_an_instance_without_address_or_host_key_is_not_reached(workspace, key, changes, said):
    """Nothing connects to a host whose key is not known."""
    fields = {"endpoint": CREATED, "host_key": "ssh-ed25519 AAAA", **changes}
    with pytest.raises(HostProblem, match=said) as refused:
        reached_over_ssh(workspace, instance(0, provider="aws", **fields))
    assert refused.value.advice == "`fleetform fleet show local` shows what it waits for"


def test_a_user_who_may_not_read_the_key_is_told_who_may(workspace, key, monkeypatch):
    """The key opens all hosts of the environment, so only the user of the controller may read it."""
    monkeypatch.setattr(os, "access", lambda path, _mode: path != str(key))
    with pytest.raises(HostProblem, match=f"this user may not read {key}") as refused:
        reached_over_ssh(workspace, host())
    assert "the user who runs the controller" in refused.value.advice


def test_a_machine_without_the_key_says_where_to_get_it(workspace):
    """Another key opens no host."""
    with pytest.raises(HostProblem, match=r"this machine has no .*id_ed25519") as refused:
        reached_over_ssh(workspace, host())
    assert "scp -p" in refused.value.advice
