"""What AWS offers an account in a region: its instance types, and their prices where AWS tells them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from fleetform.providers.offers.aws_generator import rows
from fleetform.providers.pulumi.aws.clients import cloud_failures
from fleetform.providers.pulumi.engine.failures import FailureKind, error_of, failure

__all__ = ["region_rows"]

_PRICING_REGION = "us-east-1"
"""Few regions have the service, and each has the prices of all."""

_LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}


def region_rows(region: str, now: datetime) -> list[dict[str, object]]:
    """
    Ask AWS for the rows of a catalogue, with the credentials of this process's environment.

    A price that the credentials may not ask is unknown. Spot prices are those of `now`.

    Raises:
        ProviderError: AWS does not answer, or refuses to list its types.
    """
    if importlib.util.find_spec("boto3") is None:
        raise error_of(failure(FailureKind.MISSING_PACKAGE, where=region))
    import boto3

    client = boto3.client("ec2", region_name=region)
    with cloud_failures(region):
        pages = client.get_paginator("describe_instance_types").paginate()
        types = {one["InstanceType"]: one for page in pages for one in page["InstanceTypes"]}
    return list(rows(types, _on_demand(region), region=region, spot_prices=_spot(client, now)))


def _on_demand(region: str) -> dict[str, str]:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    client = boto3.client("pricing", region_name=_PRICING_REGION)
    wanted = {**_LINUX, "regionCode": region}
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": wanted[key]} for key in wanted]
    try:
        pages = client.get_paginator("get_products").paginate(
            ServiceCode="AmazonEC2", Filters=filters
        )
        products = [json.loads(one) for page in pages for one in page["PriceList"]]
    except (BotoCoreError, ClientError):
        return {}
    return dict(price for product in products for price in _prices(product))


def _prices(product: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = product["product"]["attributes"].get("instanceType")
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            dollars = float(dimension["pricePerUnit"].get("USD", 0))
            if name and dollars > 0:
                yield name, f"{dollars:.6f}"


def _spot(client: Any, now: datetime) -> dict[str, str]:
    """Return the lowest price of each type among the zones."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        pages = client.get_paginator("describe_spot_price_history").paginate(
            ProductDescriptions=["Linux/UNIX"], StartTime=now
        )
        found = [one for page in pages for one in page["SpotPriceHistory"]]
    except (BotoCoreError, ClientError):
        return {}
    lowest: dict[str, float] = {}
    for one in found:
        price = float(one["SpotPrice"])
        lowest[one["InstanceType"]] = min(price, lowest.get(one["InstanceType"], price))
    return {name: f"{price:.6f}" for name, price in lowest.items()}
