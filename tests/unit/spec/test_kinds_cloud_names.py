"""Names of regions and instance types that AWS does not have."""

from __future__ import annotations

import pytest

from unit.spec.trees import codes, load

AWS = 'aws: {account: "123456789012", ssh_from: 203.0.113.7/32}\n'
FLEET = "type: fleet\nname: gpus\nnodes: 1\n" + AWS
VOLUME = 'type: volume\nname: data\nbackend: aws\nsize: 10GB\naws: {account: "123456789012"}\n'
RUN = "type: task\nname: train\ncommands: [echo]\nbackends: [aws]\n"


@pytest.mark.parametrize(
    ("text", "code", "place", "advice"),
    [
        (
            f"{FLEET}regions: [us-east-1, us-eaast-1]\n",
            "unknown-region",
            (5, 22),
            "Did you mean `us-east-1`? If AWS has `us-eaast-1`, run `fleetform offer --refresh --region us-eaast-1`.",
        ),
        (
            f"{FLEET}regions: [us-west-2]\ninstance_types: [g5.xlrage]\n",
            "unknown-instance-type",
            (6, 18),
            "Did you mean `g5.xlarge`? If AWS has `g5.xlrage`, run `fleetform offer --refresh --region us-west-2`.",
        ),
        (
            f"{VOLUME}region: us-east1\n",
            "unknown-region",
            (6, 9),
            "Did you mean `us-east-1`?",
        ),
        (f"{RUN}regions: [mars]\n", "unknown-region", (5, 11), "Correct the name."),
    ],
)
def test_an_unknown_name_is_a_warning(tmp_path, text, code, place, advice):
    """It is shown at its place, with the close one; AWS may have it by now."""
    found = [one for one in load(tmp_path, text).findings if one.code == code]
    assert [(one.level, (one.place.line, one.place.column)) for one in found] == [
        ("warning", place)
    ]
    assert found[0].advice.startswith(advice)


@pytest.mark.parametrize(
    "text",
    [
        f"{FLEET}regions: [us-east-1, eu-west-3]\ninstance_types: [g5.xlarge, p5.48xlarge]\n",
        "type: task\nname: train\ncommands: [echo]\nregions: [europe-west4]\ninstance_types: [a2-highgpu-1g]\n",
    ],
)
def test_names_that_may_be_right_are_not_mentioned(tmp_path, text):
    """Those of AWS, and those of a run that may start in another cloud."""
    assert not {"unknown-region", "unknown-instance-type"} & set(codes(load(tmp_path, text)))
