"""
Which Unix account a job runs as on a host, and why it cannot run there.

`run_as` of the fleet decides, together with what the agent of the host has reported. The owner of a
run is the account of the person who applied it, as the operating system told the command or the
controller: never a field of a document.
"""

from __future__ import annotations

from fleetform.model.instance import LOCAL, Instance

ROOT = "root"


def owner_of(who: str) -> str:
    """Return the account in `ada@node1`, the name of a person at a machine; empty for a program."""
    name, at, _ = who.partition("@")
    return name if at else ""


def job_account(instance: Instance, owner: str) -> str:
    """Return the account of the owner's jobs on a host; empty: that of its agent."""
    if not _is_owners(instance) or owner == instance.agent_account:
        return ""
    return owner


def account_obstacle(instance: Instance, owner: str) -> str:
    """
    Say why no job of the owner may start on a host; empty where one may.

    A host that has not reported what its agent runs as is not judged: what reaches it is.
    """
    agent, name = instance.agent_account, instance.name
    if not agent:
        return ""
    is_root = agent == ROOT
    if instance.run_as == "root":
        return "" if is_root else f"the agent of host {name} runs as {agent}, not as root"
    if instance.provider != LOCAL and instance.run_as == "agent" and is_root:
        return (
            f"the agent of host {name} is root, so `run_as: agent` would start jobs as root:"
            " write `run_as: root`"
        )
    if not _is_owners(instance):
        return ""
    if not is_root:
        own = "" if owner == agent else f"the agent of host {name} runs as {agent}"
        return own and f"{own} and cannot start jobs as {owner or 'another account'}"
    if instance.provider == LOCAL and owner == ROOT:
        return ""
    return _obstacle_of_root(instance, owner)


def _obstacle_of_root(instance: Instance, owner: str) -> str:
    """Judge an owner where the agent could start jobs as any account."""
    if not owner:
        return "it is not known which person applied it: `fleetform rerun` it"
    if owner == ROOT:
        return (
            f"root applied it, and jobs run as their owner on host {instance.name}: apply it as another"
            " account, or write `run_as: root` in the fleet"
        )
    if instance.accounts is not None and owner not in instance.accounts:
        return f"account {owner} does not exist on host {instance.name}"
    return ""


def _is_owners(instance: Instance) -> bool:
    """Tell whether jobs on a host run as their owner."""
    if instance.run_as:
        return instance.run_as == "owner"
    # On this machine the agent is of the person who applies. Elsewhere one of a plain user starts
    # jobs as that user, because it cannot do anything else.
    return instance.provider != LOCAL and instance.agent_account in {"", ROOT}
