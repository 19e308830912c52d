"""
Check where volumes lie, where runs mount them, and which of them a run can have together.

Two volumes may not be one: what a run writes to the first, another would find in the second. One in
the other's directory is as bad: it would go, be put aside and be adopted with that one. What links
make of two paths is seen on the host.

One mount inside another is right, and made after it. But nothing can be made inside of what may only
be read, and no link inside of a volume: it would lie there for all who mount it.

A directory of a fleet is on that fleet's hosts and nowhere else. This is a warning: what is mounted
may be moved after a run has finished.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fleetform.spec.checks.hosts import hosts_of
from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level, Problem
from fleetform.spec.folders import folders_of
from fleetform.spec.names import host_name
from fleetform.spec.references import Catalogue, Entry


class Place(NamedTuple):
    """
    What a volume has to itself.

    Attributes:
        field: The one that says what.
        owner: The fleet or backend that it is of.
        value: What the field says.
    """

    field: str
    owner: str
    value: str
    region: str


def places(document: Mapping[str, Any]) -> Iterator[Place]:
    """What a volume claims, by its canonical document."""
    for owner, field, _ in _CLAIMS:
        if owner in document and field in document:
            yield Place(field, document[owner], document[field], document.get("region", ""))


def check_paths(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Volumes at one path of one fleet or around one, and those that register one disk or claim."""
    claimed: dict[Place, Entry] = {}
    for entry in catalogue.of_kind("volume"):
        for place in places(entry.documents[0]):
            first = claimed.setdefault(place, entry)
            # One that is declared twice is told as a duplicate.
            if first is not entry and first.key != entry.key:
                yield entry, _path_problem(place.field, first)
    yield from _nested_volumes(
        {
            (place.owner, place.value): entry
            for place, entry in claimed.items()
            if place.field == "path"
        }
    )


def _nested_volumes(lying: dict[tuple[str, str], Entry]) -> Iterator[tuple[Entry, Problem]]:
    """`lying` has the first volume at each path of each fleet."""
    for (fleet, path), entry in lying.items():
        around = next(
            (lying[fleet, one] for one in folders_of(path) if (fleet, one) in lying), None
        )
        if around is not None:
            yield (
                entry,
                Problem(
                    "path-inside-another",
                    ("path",),
                    f"It is inside the directory of the volume `{around.key.name}`"
                    f" ({around.place.file}:{around.place.line}) of the same fleet; deleting or moving that volume would also delete or move the data of this one.",
                    "Give it a path outside of that directory.",
                ),
            )


_CLAIMS = (
    ("fleet", "path", "has the same path on the same fleet"),
    ("backend", "volume_id", "is the same disk"),
    ("backend", "claim_name", "is the same claim"),
)
"""Whose it is, the field that says which one, and what it is to have it twice."""


def _path_problem(field: str, first: Entry) -> Problem:
    where = next(where for _, one, where in _CLAIMS if one == field)
    return Problem(
        "path-claimed-twice",
        (field,),
        f"The volume `{first.key.name}` ({first.place.file}:{first.place.line}) {where}; deleting"
        " one would delete the other's data.",
        "Give one of them another path, or mount the same volume in both runs."
        if field == "path"
        else "Remove one of the two, and mount the other in both runs.",
    )


def check_volume_hosts(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Hosts of a volume that its fleet does not have."""
    for entry in catalogue.of_kind("volume"):
        document = entry.documents[0]
        key = ResourceKey("fleet", document.get("fleet", ""))
        fleet = catalogue.by_key.get(key)
        if "hosts" not in document or fleet is None or key in catalogue.broken:
            continue
        if "ssh_config" not in fleet.documents[0]:
            yield (
                entry,
                Problem(
                    "contradiction",
                    ("hosts",),
                    f"The fleet `{key.name}` has no `ssh_config`, so its hosts have no names that a"
                    " document could list.",
                    "Remove `hosts`.",
                    at_key=True,
                ),
            )
            continue
        known = [
            host_name(one["hostname"], one.get("port")) for one in hosts_of(fleet.documents[0])
        ]
        for name in document["hosts"]:
            if name not in known:
                yield (
                    entry,
                    Problem(
                        "unknown-reference",
                        ("hosts",),
                        f"The fleet `{key.name}` has no host `{name}`.",
                        f"Add the host to the fleet, or choose from {', '.join(known[:5])}"
                        f"{' and others' if len(known) > 5 else ''}.",
                        word=name,
                    ),
                )


_FIELDS = frozenset({"files", "volumes", ""})
"""What is compared: a document with an error in one of these is not judged."""


def check_mounts(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Each path that conflicts with another is reported once."""
    for entry in catalogue.of_kind("run"):
        if not entry.wrong.isdisjoint(_FIELDS):
            continue
        told: set[str] = set()
        for document in entry.documents:
            for problem in _mount_problems(document.get("volumes", ()), document.get("files", ())):
                if problem.detail not in told:
                    yield entry, problem
                told.add(problem.detail)


def _mount_problems(
    mounts: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, Any]]
) -> Iterator[Problem]:
    for outer in mounts:
        for inner in mounts:
            if inner["path"] != outer["path"] and _is_inside(inner["path"], outer["path"]):
                yield from _nested_mounts(inner, outer)
    # Absolute paths are the host's or the container's; files lie in the working directory.
    paths = {mount["path"] for mount in mounts if not mount["path"].startswith("/")}
    for path in sorted(paths):
        in_the_way = next((one["path"] for one in files if _touch(one["path"], path)), None)
        if in_the_way is not None:
            yield Problem(
                "mount-in-the-way",
                ("volumes",),
                f"`files` puts `{in_the_way}` where a volume is mounted, at `{path}`.",
                "Mount the volume elsewhere, or put the file elsewhere.",
                word=_word(path, mounts),
            )


def _nested_mounts(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> Iterator[Problem]:
    if outer.get("read_only"):
        yield Problem(
            "mount-in-the-way",
            ("volumes",),
            f"`{inner['path']}` is inside of `{outer['path']}`, which is read-only: the mount works only if that directory already exists.",
            "Mount it elsewhere.",
            level=Level.WARNING,
            word=_word(inner["path"], [inner]),
        )
    elif not inner["path"].startswith("/"):
        yield Problem(
            "mount-in-the-way",
            ("volumes",),
            f"`{inner['path']}` would be a link inside of the volume at `{outer['path']}`, visible to all runs that mount it.",
            "Mount it beside the other, or at an absolute path.",
            word=_word(inner["path"], [inner]),
        )


def _is_inside(path: str, folder: str) -> bool:
    return folder == "/" or path.startswith(f"{folder}/")


def _touch(file: str, mount: str) -> bool:
    file, mount = posixpath.normpath(file), posixpath.normpath(mount)
    return file == mount or _is_inside(file, mount) or _is_inside(mount, file)


def _word(path: str, mounts: Sequence[Mapping[str, Any]]) -> str:
    """What to point at: the name of what is mounted there, which begins its text."""
    mount = next(mount for mount in mounts if mount["path"] == path)
    name = mount.get("name", mount.get("instance_path", ""))
    return name if isinstance(name, str) else name[0]


def check_attachments(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Reported at the first volume that does not go with the rest."""
    for entry in catalogue.of_kind("run"):
        if entry.key in catalogue.broken:
            continue
        for document in entry.documents:
            problem = _attachment_problem(document, catalogue)
            if problem is not None:
                yield entry, problem
                break


def _attachment_problem(document: Mapping[str, Any], catalogue: Catalogue) -> Problem | None:
    fleets = set(document.get("fleets", ()))
    first: tuple[str, str] | None = None
    for name in _attached(document):
        key = ResourceKey("volume", name)
        volume = catalogue.by_key.get(key)
        if volume is None or key in catalogue.broken or "fleet" not in volume.documents[0]:
            continue
        fleet = volume.documents[0]["fleet"]
        if fleets and fleet not in fleets:
            return _apart(
                name,
                f"The volume `{name}` is on the hosts of `{fleet}`, and the run may be placed on"
                f" {' and '.join(f'`{one}`' for one in sorted(fleets))} only.",
                f"Add `{fleet}` to `fleets`, or mount a volume of these hosts.",
            )
        if first is not None and fleet != first[1]:
            return _apart(
                name,
                f"The volume `{name}` is on the hosts of `{fleet}`, and `{first[0]}` on those of"
                f" `{first[1]}`; no host has both.",
                "Mount volumes of one fleet.",
            )
        first = first or (name, fleet)
    return None


def _attached(document: Mapping[str, Any]) -> Iterator[str]:
    """Volumes that have to be there; of several names any one will do."""
    for mount in document.get("volumes", ()):
        if isinstance(mount.get("name"), str) and not mount.get("instance"):
            yield mount["name"]


def _apart(name: str, detail: str, advice: str) -> Problem:
    return Problem("never-placed", ("volumes",), detail, advice, level=Level.WARNING, word=name)
