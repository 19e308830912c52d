"""Parts that several resources share: tags, renamed members, an object that is there and not right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud.plugin.client import Aws

Values = Mapping[str, Any]
Outputs = dict[str, Any]


class PartialFailure(Exception):
    """The object exists, and what should follow its creation failed."""

    def __init__(self, identity: str, reason: str) -> None:
        super().__init__(reason)
        self.identity = identity


def pick(values: Values, **names: str) -> dict[str, Any]:
    """Return the members that are given, under the names of AWS."""
    return {
        theirs: values[ours]
        for ours, theirs in names.items()
        if values.get(ours) is not None and values[ours] != ""
    }


def all_tags(aws: Aws, inputs: Values) -> dict[str, str]:
    return {**aws.default_tags, **(inputs.get("tags") or {})}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tag_sets(aws: Aws, inputs: Values, kind: str) -> dict[str, Any]:
    """Return the tags as the creating call takes them: the object never exists without them."""
    tags = all_tags(aws, inputs)
    if not tags:
        return {}
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(tags)}]}


def tags_of(aws: Aws, found: Mapping[str, Any]) -> Outputs:
    """Return the tags as outputs; those of AWS itself are none."""
    tags = {row["Key"]: row["Value"] for row in found.get("Tags", []) if row["Key"][:4] != "aws:"}
    own = {key: value for key, value in tags.items() if aws.default_tags.get(key) != value}
    return {"tags": own, "tagsAll": tags}


def change_tags(aws: Aws, identity: str, old: Values, new: Values) -> None:
    before, after = all_tags(aws, old), all_tags(aws, new)
    if gone := sorted(before.keys() - after.keys()):
        aws.ec2("DeleteTags", Resources=[identity], Tags=[{"Key": key} for key in gone])
    if wanted := {key: value for key, value in after.items() if before.get(key) != value}:
        aws.ec2("CreateTags", Resources=[identity], Tags=tag_list(wanted))
