"""Which quota of vCPUs an instance counts for."""

from __future__ import annotations

import pytest

from cloud import catalog
from fleetform.providers.offers.catalogue import offers
from fleetform.providers.pulumi.aws.preflight import quota_code


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("g5.xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5en.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("m6i.xlarge", "L-1216C47A", "L-34B43A08"),
        ("is4gen.large", "L-1216C47A", "L-34B43A08"),
        ("x2idn.16xlarge", "L-7295265B", "L-E3A00192"),
        ("hpc7g.4xlarge", "", ""),
        ("u-6tb1.metal", "", ""),
    ],
)
def test_types_count_for_a_quota(instance_type, on_demand, spot):
    """By the letters before the number; a type with a quota of its own is left to EC2."""
    assert quota_code(instance_type, spot=False) == on_demand
    assert quota_code(instance_type, spot=True) == spot


@pytest.mark.parametrize("spot", [False, True])
def test_the_cloud_of_the_tests_agrees(spot):
    """For each type with GPUs of the catalogue."""
    types = {one.instance_type for one in offers("aws") if one.gpu_count}
    for one in types:
        assert quota_code(one, spot=spot) == catalog.quota_code(one, spot=spot), one
