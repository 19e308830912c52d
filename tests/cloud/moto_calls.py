"""Calls of moto in this process: the request is written again, so that moto sees only what is checked."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlencode

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from botocore.parsers import create_parser

# moto's own images are a list of years ago, and reading it takes a second.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

from moto.backends import get_backend
from moto.core.request import normalize_request
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.responses import EC2Response
from moto.iam.responses import IamResponse

from cloud.wire import Call, Refusal, request_of


def _tags_of(resource: Any) -> list[dict[str, str]]:
    """Return the tags of one resource; moto looks through those of all resources for them."""
    found = resource.ec2_backend.tags.get(resource.id, {}) if resource.id else {}
    return [{"resource_id": resource.id, "key": key, "value": found[key]} for key in found]


# With it a list of 2 000 disks is linear, as that of EC2 is.
TaggedEC2Resource.get_tags = _tags_of

_RESPONSES = {"ec2": EC2Response, "iam": IamResponse}


def forget_everything() -> None:
    """Reset moto: its state belongs to the process."""
    for service in _RESPONSES:
        get_backend(service).reset()


def has_instance_profile(account: str, name: str) -> bool:
    """Tell whether IAM of an account has an instance profile."""
    profiles = get_backend("iam")[account]["aws"].instance_profiles
    return any(one.name == name for one in profiles.values())


def call_moto(call: Call, account: str) -> dict[str, Any]:
    """Return moto's result of a call; the caller allows one call at a time."""
    headers, body = request_of(call)
    signed = HTTPHeaders()
    for name, value in headers.items():
        signed[name] = value
    scope = f"{call.access_key}/20260101/{call.region}/{call.service}/aws4_request"
    signed["Authorization"] = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=a, Signature=b"
    signed["x-moto-account-id"] = account
    host = f"{call.service}.{call.region}.amazonaws.com"
    text = urlencode(body) if isinstance(body, dict) else body
    request = AWSPreparedRequest("POST", f"https://{host}/", signed, text, False)
    status, _, answer = _RESPONSES[call.service].dispatch(normalize_request(request))
    raw = {
        "status_code": status,
        "headers": HTTPHeaders(),
        "body": answer.encode() if isinstance(answer, str) else answer,
    }
    result: dict[str, Any] = create_parser(call.model.service_model.protocol).parse(
        raw, call.model.output_shape
    )
    if status >= 300:
        error = result.get("Error", {})
        raise Refusal(error.get("Code", "InternalError"), error.get("Message") or "", status)
    result.pop("ResponseMetadata", None)
    return result
