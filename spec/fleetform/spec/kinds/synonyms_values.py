"""
What people write as a field's value that is none of its choices, and which of them it is here.

The words are those of Slurm, Kubernetes, Terraform, container engines and the clouds. A field of
one name may have other choices in another kind, so whoever asks looks whether it has the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fleetform.spec.names import bare_word

__all__ = ["VALUES", "meant_value"]


VALUES: Mapping[str, Mapping[str, str]] = {
    "runtime": {
        "container": "docker podman containerd enroot pyxis apptainer singularity oci kubernetes",
        "process": "host native bare bare-metal none shell",
    },
    "spot_policy": {
        "spot": "preemptible interruptible low-priority spot-only",
        "on-demand": "regular standard reserved",
        "auto": "any either both",
    },
    "creation_policy": {"reuse-or-create": "create", "reuse": "never never-create"},
    "startup_order": {"any": "parallel all", "workers-first": "master-last"},
    "stop_criteria": {"all-done": "all", "master-done": "master leader"},
    "state": {
        "running": "started enabled up",
        "stopped": "paused suspended cancelled disabled down",
        "open": "up enabled active",
        "draining": "drain drained inactive",
        "closed": "down disabled",
        "active": "enabled",
        "disabled": "inactive suspended locked",
    },
    "on_change": {"restart": "replace recreate rerun", "hold": "ignore wait none manual"},
    "when": {
        "succeeded": "afterok success completed done",
        "failed": "afternotok failure error",
        "finished": "afterany always ended",
        "started": "after running",
    },
    "on": {
        "error": "failure fail exit on-failure",
        "interruption": "spot interrupted",
        "no-capacity": "capacity insufficient-capacity",
        "node-failure": "node-fail lost host-failure",
        "preemption": "preempted evicted",
        "time-limit": "timeout max-duration",
    },
    "deletion_policy": {
        "retain": "keep orphan snapshot never",
        "delete": "destroy remove recycle",
    },
    "access_modes": {
        "ReadWriteOnce": "rwo",
        "ReadOnlyMany": "rox",
        "ReadWriteMany": "rwx",
        "ReadWriteOncePod": "rwop",
    },
    "strategy": {"drain": "rolling rollingupdate", "recreate": "replace all-at-once"},
    "placement": {"cluster": "compact pack group efa infiniband", "any": "none default"},
    "sharing": {
        "whole": "exclusive none off",
        "exact": "shared yes user",
        "blocks": "slots mig timeslicing",
    },
    "run_as": {"owner": "user submitter", "agent": "root service"},
    "gpu_isolation": {"enforced": "strict cgroup hard", "advisory": "soft none off"},
    "mode": {"off": "none never", "requeue": "checkpoint", "stop": "cancel kill terminate"},
    "role": {"admin": "owner administrator", "reader": "viewer read-only", "user": "member"},
    "repeat": {"daily": "day everyday", "weekly": "week"},
    "each": {"user": "users person", "project": "projects account namespace"},
    "ide": {"vscode": "code visual-studio-code"},
    "host_keys": {"known": "yes strict", "first-use": "accept-new no tofu"},
}
"""By field, then by choice: the words, as they are compared, with a dash between parts."""


def meant_value(field: str, word: str, choices: Collection[str]) -> str | None:
    """The choice of `field` that `word` means elsewhere; None if none is known."""
    bare = bare_word(word)
    for choice, words in VALUES.get(field, {}).items():
        if choice in choices and bare in map(bare_word, words.split()):
            return choice
    return None
