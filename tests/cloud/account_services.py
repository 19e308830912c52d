"""Services of an account beside EC2: identity, parameters, quotas, roles, file systems."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from cloud.catalog import ADDRESS_QUOTA, ON_DEMAND_QUOTAS, SPOT_QUOTAS, VCPUS, Catalog
from cloud.moto_calls import call_moto
from cloud.wire import Call, Refusal

_SPOT_ROLE = "AWSServiceRoleForEC2Spot"


def answer_service(call: Call, account: str, catalog: Catalog) -> dict[str, Any]:
    """Return the result of a call of one of these services, or raise `Refusal`."""
    parameters = call.parameters
    match call.service, call.operation:
        case "sts", "GetCallerIdentity":
            arn = f"arn:aws:iam::{account}:user/tests"
            return {"Account": account, "UserId": call.access_key, "Arn": arn}
        case "ssm", "GetParameter":
            return {"Parameter": _parameter(catalog, parameters["Name"], call.region)}
        case "ssm", "GetParameters":
            known = [name for name in parameters["Names"] if name in catalog.parameters]
            return {
                "Parameters": [_parameter(catalog, name, call.region) for name in known],
                "InvalidParameters": [name for name in parameters["Names"] if name not in known],
            }
        case "service-quotas", "GetServiceQuota":
            return {"Quota": _quota(catalog, parameters["ServiceCode"], parameters["QuotaCode"])}
        case "service-quotas", "ListServiceQuotas":
            codes = sorted({*ON_DEMAND_QUOTAS.values(), *SPOT_QUOTAS.values()})
            service = parameters["ServiceCode"]
            return {"Quotas": [_quota(catalog, service, code) for code in codes]}
        case "iam", "GetRole" if parameters["RoleName"] == _SPOT_ROLE:
            if not catalog.spot_role:
                raise Refusal(
                    "NoSuchEntity", f"The role with name {_SPOT_ROLE} cannot be found.", 404
                )
            return {"Role": _spot_role(account)}
        case "pricing", "GetProducts":
            rules = {one["Field"]: one["Value"] for one in parameters["Filters"]}
            prices = catalog.prices.get(rules["regionCode"], {})
            return {"PriceList": [_product(name, price) for name, price in prices.items()]}
        case "efs" | "fsx", "DescribeFileSystems":
            wanted = (
                parameters["FileSystemId"]
                if call.service == "efs"
                else parameters["FileSystemIds"][0]
            )
            found = catalog.file_systems.get(wanted)
            if found is None or ("LustreConfiguration" in found) != (call.service == "fsx"):
                raise Refusal("FileSystemNotFound", f"File system '{wanted}' does not exist.", 404)
            return {"FileSystems": [found]}
        case "iam", _:
            return call_moto(call, account)
    raise Refusal(
        "InvalidAction", f"the front of the tests lacks {call.service}:{call.operation}", 501
    )


def _product(instance_type: str, price: str) -> str:
    dimensions = {"rate": {"unit": "Hrs", "pricePerUnit": {"USD": price}}}
    return json.dumps({
        "product": {"attributes": {"instanceType": instance_type}},
        "terms": {"OnDemand": {"term": {"priceDimensions": dimensions}}},
    })  # fmt: skip


def _parameter(catalog: Catalog, name: str, region: str) -> dict[str, Any]:
    if name not in catalog.parameters:
        raise Refusal("ParameterNotFound", f"parameter {name} not found")
    return {
        "Name": name,
        "Type": "String",
        "Value": catalog.parameters[name],
        "Version": 1,
        "ARN": f"arn:aws:ssm:{region}::parameter{name}",
        "DataType": "aws:ec2:image",
    }


def _quota(catalog: Catalog, service: str, code: str) -> dict[str, Any]:
    if code == ADDRESS_QUOTA:
        return {
            "ServiceCode": "ec2",
            "QuotaCode": code,
            "QuotaName": "EC2-VPC Elastic IPs",
            "Value": float(catalog.vcpus.get(code, VCPUS)),
            "Adjustable": True,
        }
    spot = code in SPOT_QUOTAS.values()
    names = {value: key for key, value in (SPOT_QUOTAS if spot else ON_DEMAND_QUOTAS).items()}
    if service != "ec2" or code not in names:
        raise Refusal("NoSuchResourceException", f"no quota {code} of {service}")
    kind = "Spot Instance Requests" if spot else "On-Demand instances"
    return {
        "ServiceCode": "ec2",
        "QuotaCode": code,
        "QuotaName": f"Running {kind}: {names[code]}",
        "Value": float(catalog.vcpus.get(code, VCPUS)),
        "Adjustable": True,
    }


def _spot_role(account: str) -> dict[str, Any]:
    path = "/aws-service-role/spot.amazonaws.com/"
    return {
        "Path": path,
        "RoleName": _SPOT_ROLE,
        "RoleId": "AROATESTS",
        "Arn": f"arn:aws:iam::{account}:role{path}{_SPOT_ROLE}",
        "CreateDate": datetime(2026, 1, 1, tzinfo=UTC),
    }
