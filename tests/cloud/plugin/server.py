"""
`pulumi-resource-aws` of the tests: speaks the provider's protocol with the engine, and EC2 with the front.

The real plugin is on no package registry. This one has the resources and functions that fleetform
uses, with the names, the replacements and the messages of the real one; an input that it does not know
fails the check, so that no program is right only here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import any_pb2, json_format, struct_pb2
from google.protobuf.empty_pb2 import Empty
from google.rpc import status_pb2

from cloud.plugin.client import ATTEMPTS, Aws, CallError, Cancelled, forbid_other_machines
from cloud.plugin.differences import Difference, compare, like, replaces
from cloud.plugin.functions import FUNCTIONS
from cloud.plugin.protocol import plugin_pb2, proto, rpc
from cloud.plugin.resources import RESOURCES, PartialFailure, Resource

VERSION = "7.51.1"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What the engine sends for a value that a preview does not know."""
DEFAULTS = "__defaults"
"""Names of the inputs that `Check` chose, as the real plugin keeps them in the state."""
THREADS = 64
"""The engine creates as many resources at once as its `parallel` says, at most."""


class Provider(rpc.ResourceProviderServicer):
    def __init__(self) -> None:
        self.aws = Aws()

    def Handshake(self, request: Any, context: Any) -> Any:
        return proto.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def Attach(self, request: Any, context: Any) -> Any:
        return Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        self.aws.cancelled.set()
        return Empty()

    # -- Configuration

    def CheckConfig(self, request: Any, context: Any) -> Any:
        given = _values(request.news)
        unknown = sorted(given.keys() - _CONFIGURATION)
        if unknown:
            return proto.CheckResponse(failures=[_unknown_input(name) for name in unknown])
        return proto.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        old, new = _values(request.old_inputs), _values(request.news)
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        return _difference_response(
            [Difference(name, "update") for name in changed], frozenset(), False
        )

    def Configure(self, request: Any, context: Any) -> Any:
        try:
            self._configure(_values(request.args))
        except CallError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return proto.ConfigureResponse(supportsPreview=True)

    def _configure(self, given: Mapping[str, Any]) -> None:
        # Nested values of a provider's configuration are JSON in a string.
        values = {name: _decoded(value) for name, value in given.items()}
        region = values.get("region") or os.environ.get("AWS_REGION", "")
        if not region:
            raise CallError("Missing region configuration: set aws:region or AWS_REGION")
        endpoints = {
            service: url for row in values.get("endpoints") or [] for service, url in row.items()
        }
        self.aws = Aws(
            region=region,
            endpoints=endpoints,
            attempts=int(values.get("maxRetries") or ATTEMPTS),
            default_tags=(values.get("defaultTags") or {}).get("tags") or {},
        )
        if not values.get("skipCredentialsValidation"):
            self._check_account(values.get("allowedAccountIds") or [])

    def _check_account(self, allowed: list[str]) -> None:
        try:
            self.aws.account = self.aws.call("sts", "GetCallerIdentity")["Account"]
        except CallError as error:
            raise CallError(
                f"validating provider credentials: retrieving caller identity from STS: {error}"
            ) from error
        if allowed and self.aws.account not in map(str, allowed):
            raise CallError(f"AWS account ID not allowed: {self.aws.account}")

    # -- Resources

    def Check(self, request: Any, context: Any) -> Any:
        resource = _resource(request.urn)
        old, new = _values(request.olds), _values(request.news)
        known = resource.inputs | {DEFAULTS, "region"}
        failures = [_unknown_input(name) for name in sorted(new.keys() - known)]
        failures += [
            proto.CheckFailure(property=name, reason=f"Missing required argument: {name}")
            for name in sorted(resource.required - new.keys())
        ]
        chosen = {name: value for name, value in resource.defaults.items() if name not in new}
        if resource.named and resource.named not in new:
            chosen[resource.named] = old.get(resource.named) or _auto_name(request)
        new |= chosen
        new[DEFAULTS] = sorted(chosen)
        return proto.CheckResponse(inputs=_struct(new), failures=failures)

    def Diff(self, request: Any, context: Any) -> Any:
        resource = _resource(request.urn)
        old, new = _values(request.old_inputs), _values(request.news)
        found = compare(_without_defaults(old), _without_defaults(new))
        ignored = tuple(request.ignoreChanges)
        found = [one for one in found if not one.path.startswith(ignored)] if ignored else found
        found = [
            one
            for one in found
            if not (one.kind == "delete" and one.root in resource.chosen_by_aws)
        ]
        replacing = resource.replacing(new)
        # Two objects of one name cannot exist at once: a name that Check chose is drawn again.
        exclusive = bool(resource.named) and resource.named not in new.get(DEFAULTS, [])
        return _difference_response(found, replacing, exclusive)

    def Create(self, request: Any, context: Any) -> Any:
        resource = _resource(request.urn)
        inputs = _values(request.properties)
        if request.preview:
            unknown = dict.fromkeys(resource.computed, UNKNOWN)
            return proto.CreateResponse(properties=_struct({**unknown, **inputs}))
        identity = ""
        try:
            identity = resource.create(self.aws, inputs)
            outputs = resource.read(self.aws, identity, inputs) or {}
        except PartialFailure as error:
            return _abort_partly(context, error, inputs)
        except (CallError, Cancelled) as error:
            context.abort(grpc.StatusCode.UNKNOWN, _listed(f"creating {resource.title}: {error}"))
        return proto.CreateResponse(id=identity, properties=_struct({**inputs, **outputs}))

    def Read(self, request: Any, context: Any) -> Any:
        resource = _resource(request.urn)
        inputs, state = _values(request.inputs), _values(request.properties)
        try:
            outputs = resource.read(self.aws, request.id, state or inputs)
        except (CallError, Cancelled) as error:
            context.abort(
                grpc.StatusCode.UNKNOWN, f"reading {resource.title} ({request.id}): {error}"
            )
        if outputs is None:
            return proto.ReadResponse()
        if inputs:
            found = {name: like(value, outputs.get(name, value)) for name, value in inputs.items()}
            if "tags" in outputs and (outputs["tags"] or "tags" in inputs):
                # A tag that a person added is a change, unlike a default of AWS.
                found["tags"] = outputs["tags"]
        else:
            found = {
                name: outputs[name] for name in resource.inputs & outputs.keys() if outputs[name]
            }
        return proto.ReadResponse(
            id=request.id, inputs=_struct(found), properties=_struct({**state, **found, **outputs})
        )

    def Update(self, request: Any, context: Any) -> Any:
        resource = _resource(request.urn)
        old, new = _values(request.old_inputs), _values(request.news)
        if request.preview:
            return proto.UpdateResponse(properties=_struct({**_values(request.olds), **new}))
        changed = {one.path.partition(".")[0].partition("[")[0] for one in compare(old, new)}
        try:
            resource.update(self.aws, request.id, old, new, changed - {DEFAULTS})
            outputs = resource.read(self.aws, request.id, new) or {}
        except (CallError, Cancelled) as error:
            message = f"updating {resource.title} ({request.id}): {error}"
            context.abort(grpc.StatusCode.UNKNOWN, _listed(message))
        return proto.UpdateResponse(properties=_struct({**new, **outputs}))

    def Delete(self, request: Any, context: Any) -> Any:
        resource = _resource(request.urn)
        try:
            resource.delete(self.aws, request.id, _values(request.properties))
        except (CallError, Cancelled) as error:
            message = f"deleting {resource.title} ({request.id}): {error}"
            context.abort(grpc.StatusCode.UNKNOWN, _listed(message))
        return Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        function = FUNCTIONS.get(request.tok)
        if function is None:
            context.abort(
                grpc.StatusCode.UNIMPLEMENTED, f"the plugin of the tests lacks {request.tok}"
            )
            raise AssertionError
        try:
            result = function(self.aws, _values(request.args))
        except (CallError, Cancelled) as error:
            context.abort(grpc.StatusCode.UNKNOWN, f"invoking {request.tok}: {error}")
        return proto.InvokeResponse(**{"return": _struct(result)})


_CONFIGURATION = frozenset({
    "accessKey", "allowedAccountIds", "defaultTags", "endpoints", "maxRetries", "region", "retryMode",
    "secretKey", "skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation",
    "skipRequestingAccountId", "version",
})  # fmt: skip


def _resource(urn: str) -> Resource:
    token = urn.split("::")[2].rpartition("$")[2]
    if token not in RESOURCES:
        raise NotImplementedError(f"the plugin of the tests lacks {token}")
    return RESOURCES[token]


def _unknown_input(name: str) -> Any:
    return proto.CheckFailure(
        property=name, reason="the plugin of the tests does not know this input"
    )


def _auto_name(request: Any) -> str:
    seed = request.randomSeed or os.urandom(16)
    return f"{request.urn.rpartition('::')[2]}-{seed.hex()[:7]}"


def _without_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != DEFAULTS}


_KINDS = {
    "add": (proto.PropertyDiff.ADD, proto.PropertyDiff.ADD_REPLACE),
    "delete": (proto.PropertyDiff.DELETE, proto.PropertyDiff.DELETE_REPLACE),
    "update": (proto.PropertyDiff.UPDATE, proto.PropertyDiff.UPDATE_REPLACE),
}


def _difference_response(
    found: list[Difference], replacing: frozenset[str], exclusive: bool
) -> Any:
    roots = sorted({one.root for one in found})
    again = [one for one in found if replaces(one.path, replacing)]
    some = proto.DiffResponse.DIFF_SOME if found else proto.DiffResponse.DIFF_NONE
    return proto.DiffResponse(
        changes=some,
        diffs=roots,
        replaces=sorted({one.root for one in again}),
        deleteBeforeReplace=bool(again) and exclusive,
        hasDetailedDiff=True,
        detailedDiff={
            one.path: proto.PropertyDiff(kind=_KINDS[one.kind][one in again], inputDiff=True)
            for one in found
        },
    )


def _abort_partly(context: Any, error: PartialFailure, inputs: dict[str, Any]) -> None:
    """Say that the object exists and is not right: the engine keeps it in the state."""
    detail = proto.ErrorResourceInitFailed(
        id=error.identity, properties=_struct(inputs), inputs=_struct(inputs), reasons=[str(error)]
    )
    packed = any_pb2.Any()
    packed.Pack(detail)
    status = status_pb2.Status(
        code=grpc.StatusCode.UNKNOWN.value[0], message=str(error), details=[packed]
    )
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))


def _listed(message: str) -> str:
    return f"1 error occurred:\n\t* {message}\n\n"


def _values(struct: Any) -> dict[str, Any]:
    values: dict[str, Any] = _whole(json_format.MessageToDict(struct))
    return values


def _whole(value: Any) -> Any:
    """Return the value with whole numbers as integers: on the wire every number is a double."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _struct(values: Mapping[str, Any]) -> Any:
    struct = struct_pb2.Struct()
    struct.update({name: value for name, value in values.items() if value is not None})
    return struct


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        return json.loads(value)
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def main() -> None:
    forbid_other_machines()
    server = grpc.server(
        ThreadPoolExecutor(THREADS), options=[("grpc.max_receive_message_length", 400 << 20)]
    )
    rpc.add_ResourceProviderServicer_to_server(Provider(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
