# ruff: noqa: N802 -- the protocol names the methods
"""
A Pulumi plugin for tests whose resources are files in a folder: its list is the actual state.

Each resource `shelf:index:Item` is `items/<id>.json` in the folder FLEETFORM_TEST_SHELF. The file
`control.json` there slows calls down and lets them fail. It speaks the same protocol as the plugin
of a cloud, so the engine in the tests is the real one.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

FOLDER = Path(os.environ["FLEETFORM_TEST_SHELF"])
UPDATED_IN_PLACE = {"tags", "colour"}
"""A change of any other property replaces the item."""


class Shelf(provider_pb2_grpc.ResourceProviderServicer):
    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=True, accept_outputs=True
        )

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="1.0.0")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse()

    def Configure(self, request: Any, context: Any) -> Any:
        if message := control().get("configure"):
            return refuse(context, message, provider_pb2.ConfigureResponse())
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=True, acceptOutputs=True
        )

    def Check(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        old, new = plain(request.old_inputs), plain(request.news)
        kind = provider_pb2.PropertyDiff
        detailed = {
            name: kind(
                kind=kind.UPDATE if name in UPDATED_IN_PLACE else kind.UPDATE_REPLACE,
                inputDiff=True,
            )
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        }
        return provider_pb2.DiffResponse(
            changes=(
                provider_pb2.DiffResponse.DIFF_SOME
                if detailed
                else provider_pb2.DiffResponse.DIFF_NONE
            ),
            detailedDiff=detailed,
            hasDetailedDiff=True,
            diffs=list(detailed),
            replaces=[name for name in detailed if name not in UPDATED_IN_PLACE],
        )

    def Create(self, request: Any, context: Any) -> Any:
        properties = plain(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(id="", properties=struct(properties))
        name = request.urn.rpartition("::")[2]
        if message := control().get("fail", {}).get(name):
            return refuse(context, message, provider_pb2.CreateResponse())
        time.sleep(control().get("before_create_seconds", 0))
        item = f"item-{uuid.uuid4().hex[:12]}"
        write(item, {"name": name, "properties": properties})
        time.sleep(control().get("after_create_seconds", 0))
        return provider_pb2.CreateResponse(id=item, properties=struct(outputs(item, properties)))

    def Read(self, request: Any, context: Any) -> Any:
        if not path(request.id).exists():
            return provider_pb2.ReadResponse(id="")
        properties = json.loads(path(request.id).read_text())["properties"]
        return provider_pb2.ReadResponse(
            id=request.id,
            properties=struct(outputs(request.id, properties)),
            inputs=struct(properties),
        )

    def Update(self, request: Any, context: Any) -> Any:
        properties = plain(request.news)
        write(request.id, {**json.loads(path(request.id).read_text()), "properties": properties})
        return provider_pb2.UpdateResponse(properties=struct(outputs(request.id, properties)))

    def Delete(self, request: Any, context: Any) -> Any:
        time.sleep(control().get("before_delete_seconds", 0))
        path(request.id).unlink(missing_ok=True)
        time.sleep(control().get("after_delete_seconds", 0))
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


def control() -> dict[str, Any]:
    try:
        return dict(json.loads((FOLDER / "control.json").read_text()))
    except FileNotFoundError:
        return {}


def path(item: str) -> Path:
    return FOLDER / "items" / f"{item}.json"


def write(item: str, value: Any) -> None:
    new = path(item).with_suffix(".new")
    new.write_text(json.dumps(value))
    new.rename(path(item))


def outputs(item: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {**properties, "address": f"address-of-{item}"}


def plain(value: Any) -> dict[str, Any]:
    return dict(json_format.MessageToDict(value))


def struct(value: dict[str, Any]) -> Any:
    made = struct_pb2.Struct()
    made.update(value)
    return made


def refuse(context: Any, message: str, answer: Any) -> Any:
    context.set_code(grpc.StatusCode.UNKNOWN)
    context.set_details(message)
    return answer


def main() -> None:
    server = grpc.server(futures.ThreadPoolExecutor(64))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Shelf(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
