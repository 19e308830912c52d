"""
Requests and answers of AWS on the wire, as values.

Every request is checked against the service model of botocore: an operation, a parameter, a type or
an enumeration that AWS does not have is refused, where moto would ignore it.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import botocore.session
from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator
from moto.core.parse import PROTOCOL_PARSERS

SERVICES = ("ec2", "efs", "fsx", "iam", "pricing", "service-quotas", "ssm", "sts")
"""Services of the front, as botocore calls them."""

_SIGNED = {"servicequotas": "service-quotas", "elasticfilesystem": "efs"}
"""Services by the name in signatures, where it is another one."""

_SCOPE = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")


class Refusal(Exception):
    """An error that AWS answers; `status` 500 and 503 are those that clients retry."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Call:
    service: str
    operation: str
    region: str
    access_key: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> OperationModel:
        return service_model(self.service).operation_model(self.operation)


@cache
def service_model(service: str) -> ServiceModel:
    return botocore.session.Session().get_service_model(service)


def read_signer(headers: Mapping[str, str]) -> tuple[str, str, str]:
    """Return access key, region and service of a signed request. The signature itself is not checked."""
    found = _SCOPE.search(headers.get("Authorization", ""))
    if found is None:
        raise Refusal("MissingAuthenticationToken", "Request is missing Authentication Token", 403)
    key, region, service = found.groups()
    service = _SIGNED.get(service, service)
    if service not in SERVICES:
        raise Refusal("UnknownEndpoint", f"the front of the tests has no service {service}", 501)
    return key, region, service


def read_call(
    headers: Mapping[str, str], body: bytes, method: str = "POST", path: str = "/"
) -> Call:
    """Return the call of one request; raise `Refusal` when the service model has no such call."""
    key, region, service = read_signer(headers)
    if service_model(service).protocol == "rest-json":
        operation, parameters = _read_rest(service, method, path)
    elif service_model(service).protocol == "json":
        operation, parameters = _read_json(service, headers, body)
    else:
        operation, parameters = _read_query(service, body)
    call = Call(service, operation, region, key, parameters)
    shape = call.model.input_shape
    if shape is not None:
        if report := ParamValidator().validate(parameters, shape).generate_report():
            raise Refusal("MissingParameter", report)
        for problem in _wrong_enumerations(shape, parameters):
            raise Refusal("InvalidParameterValue", problem)
    return call


def _operation(service: str, name: str) -> OperationModel:
    if name not in service_model(service).operation_names:
        raise Refusal("InvalidAction", f"The action {name} is not valid for this web service.")
    return service_model(service).operation_model(name)


def _read_query(service: str, body: bytes) -> tuple[str, dict[str, Any]]:
    sent = dict(parse_qsl(body.decode(), keep_blank_values=True))
    name, version = sent.pop("Action", ""), sent.pop("Version", "")
    model = _operation(service, name)
    if version != service_model(service).api_version:
        raise Refusal("InvalidParameterValue", f"no version {version!r} of {service}")
    parser = PROTOCOL_PARSERS[service_model(service).protocol](model)
    request = {"values": sent, "headers": {}, "body": body, "method": "POST"}
    try:
        parameters: dict[str, Any] = parser.parse({**request, "url_path": "/", "url_params": {}})
    except ValueError as error:
        raise Refusal("InvalidParameterValue", str(error)) from error
    # What the model cannot write again was in no parameter of the model.
    if unknown := sorted(sent.keys() - _write_query(model, parameters).keys()):
        raise Refusal("UnknownParameter", f"The parameter {unknown[0]} is not recognized")
    return name, parameters


def _write_query(model: OperationModel, parameters: dict[str, Any]) -> dict[str, str]:
    serializer = create_serializer(model.service_model.protocol, include_validation=False)
    body: dict[str, str] = serializer.serialize_to_request(parameters, model)["body"]
    return body


def _read_json(service: str, headers: Mapping[str, str], body: bytes) -> tuple[str, dict[str, Any]]:
    target = headers.get("X-Amz-Target", "")
    model = _operation(service, target.rpartition(".")[2])
    parameters = json.loads(body or b"{}")
    known = model.input_shape.members if model.input_shape is not None else {}
    if unknown := sorted(parameters.keys() - known.keys()):
        raise Refusal("ValidationException", f"The parameter {unknown[0]} is not recognized")
    return model.name, parameters


def _read_rest(service: str, method: str, path: str) -> tuple[str, dict[str, Any]]:
    """Read a call that has all of its parameters in the query of its URL, which is enough for lists."""
    place, _, query = path.partition("?")
    asked = {"method": method, "requestUri": place}
    for name in service_model(service).operation_names:
        model = service_model(service).operation_model(name)
        if {
            **model.http,
            "requestUri": model.http["requestUri"].rstrip("/"),
        }.items() >= asked.items():
            break
    else:
        raise Refusal("UnknownOperationException", f"{method} {place} is no operation of {service}")
    members = model.input_shape.members
    names = {one.serialization.get("name", name): name for name, one in members.items()}
    sent = dict(parse_qsl(query))
    if unknown := sorted(sent.keys() - names.keys()):
        raise Refusal("BadRequest", f"The parameter {unknown[0]} is not recognized")
    return model.name, {names[name]: value for name, value in sent.items()}


def _wrong_enumerations(shape: Shape, value: Any, path: str = "") -> Iterator[str]:
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            if name in value:
                yield from _wrong_enumerations(member, value[name], f"{path}.{name}".lstrip("."))
    elif isinstance(shape, ListShape):
        for element in value:
            yield from _wrong_enumerations(shape.member, element, path)
    elif getattr(shape, "enum", None) and value not in shape.enum:
        yield f"Invalid value '{value}' for {path}"


def request_of(call: Call) -> tuple[dict[str, str], bytes | str]:
    """Return headers and body with which the call would arrive."""
    serializer = create_serializer(
        service_model(call.service).protocol, include_validation=False
    ).serialize_to_request(call.parameters, call.model)
    return dict(serializer["headers"]), serializer["body"]


def write_result(call: Call, result: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a successful answer."""
    output = call.model.output_shape
    request_id = str(uuid.uuid4())
    if service_model(call.service).protocol in {"json", "rest-json"}:
        return _JSON, json.dumps(result, default=_plain).encode()
    inside = _members(output, result) if isinstance(output, StructureShape) else ""
    if call.service == "ec2":
        inside += f"<requestId>{request_id}</requestId>"
        if output is None or not output.members:
            inside += "<return>true</return>"
    else:
        wrapper = f"{call.operation}Result"
        inside = f"<{wrapper}>{inside}</{wrapper}><ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
    name = f"{call.operation}Response"
    return _XML, f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}>{inside}</{name}>'.encode()


def write_refusal(service: str, refusal: Refusal) -> tuple[dict[str, str], bytes]:
    """Return headers and body of an error."""
    code, message = escape(refusal.code), escape(refusal.message)
    if service in SERVICES and service_model(service).protocol in {"json", "rest-json"}:
        body = {"__type": refusal.code, "message": refusal.message}
        return {**_JSON, "x-amzn-errortype": refusal.code}, json.dumps(body).encode()
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    request = f"{uuid.uuid4()}"
    if service == "ec2":
        text = f"<Response><Errors>{error}</Errors><RequestID>{request}</RequestID></Response>"
    else:
        text = f"<ErrorResponse>{error}<RequestId>{request}</RequestId></ErrorResponse>"
    return _XML, text.encode()


_XML = {"Content-Type": "text/xml;charset=UTF-8"}
_JSON = {"Content-Type": "application/x-amz-json-1.1"}


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else str(value)


def _members(shape: StructureShape, value: Mapping[str, Any]) -> str:
    return "".join(
        _element(member, value[name], member.serialization.get("name", name))
        for name, member in shape.members.items()
        if value.get(name) is not None
    )


def _element(shape: Shape, value: Any, name: str) -> str:
    if isinstance(shape, StructureShape):
        return f"<{name}>{_members(shape, value)}</{name}>"
    if isinstance(shape, ListShape):
        item = shape.member.serialization.get("name", "member")
        items = "".join(_element(shape.member, element, item) for element in value)
        return items if shape.serialization.get("flattened") else f"<{name}>{items}</{name}>"
    return f"<{name}>{_scalar(value)}</{name}>"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return escape(str(value))
