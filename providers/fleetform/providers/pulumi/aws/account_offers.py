"""What AWS offers an account in a region: its instance types, and their prices where AWS tells them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.offers.aws_generator import rows
from fleetform.providers.offers.catalogue import RegionOffers
from fleetform.providers.pulumi.aws.clients import cloud_failures
from fleetform.providers.pulumi.engine.failures import FailureKind, error_of, failure

__all__ = ["region_offers"]

_PRICING_REGION = "us-east-1"
"""Few regions have the service, and each has the prices of all."""

_LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}


def region_offers(region: str, now: datetime) -> RegionOffers:
    """
    Ask AWS for the rows of a catalogue, with the credentials of this process's environment.

    A price that the credentials may not ask is unknown, and the answer says so. Spot prices are those of `now`.

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
    on_demand, on_demand_problem = _asked(lambda: _on_demand(region), region)
    spot, spot_problem = _asked(lambda: _spot(client, now), region)
    found = list(rows(types, on_demand, region=region, spot_prices=spot))
    return RegionOffers(found, on_demand_problem, spot_problem)


def _asked(
    ask: Callable[[], dict[str, str]], region: str
) -> tuple[dict[str, str], ProviderError | None]:
    """Return prices, and why there are none if AWS does not answer or refuses."""
    try:
        with cloud_failures(region):
            return ask(), None
    except ProviderError as problem:
        return {}, problem


def _on_demand(region: str) -> dict[str, str]:
    import boto3

    client = boto3.client("pricing", region_name=_PRICING_REGION)
    wanted = {**_LINUX, "regionCode": region}
    filters = [{"Type": "TERM_MATCH", "Field": key, "Value": wanted[key]} for key in wanted]
    pages = client.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters)
    products = [json.loads(one) for page in pages for one in page["PriceList"]]
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
    pages = client.get_paginator("describe_spot_price_history").paginate(
        ProductDescriptions=["Linux/UNIX"], StartTime=now
    )
    found = [one for page in pages for one in page["SpotPriceHistory"]]
    lowest: dict[str, float] = {}
    for one in found:
        price = float(one["SpotPrice"])
        lowest[one["InstanceType"]] = min(price, lowest.get(one["InstanceType"], price))
    return {name: f"{price:.6f}" for name, price in lowest.items()}
