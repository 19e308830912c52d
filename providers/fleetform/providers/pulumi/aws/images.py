"""
Which image the hosts of a fleet boot from: chosen by their type, looked up once, and pinned.

The makers of images publish new ones every few weeks under the same parameter of AWS. What a parameter said when a fleet first
needed it is kept beside the records of the stacks, so that a host that is created later boots from the same image as the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.contract.stacks import OF_ENVIRONMENT, StackRecords
from fleetform.providers.pulumi.aws.clients import cloud_failures, service_client
from fleetform.providers.pulumi.aws.program import AwsAccount

__all__ = ["Images", "declared_image", "latest_image"]

_KIND = "images"


def declared_image(request: InstanceRequest) -> str:
    """
    Return the image of a host: the id of an image, or the name of a parameter that has it.

    Raises:
        PermanentError: No image is known for its type.
    """
    said = request.endpoint.get("image")
    if said:
        return str(said)
    # Here: catalogues are read where a fleet declares no image.
    from fleetform.providers.offers.aws_images import image_parameter

    instance_type = request.endpoint["instance_type"]
    if found := image_parameter(instance_type):
        return found
    raise PermanentError(
        f"no image with a driver is known for instances of type {instance_type}",
        advice="set `aws.image` of the fleet to the id of an image, or to the name of a parameter that has it",
    )


def latest_image(account: AwsAccount, parameter: str) -> str:
    """
    Return the id that a parameter has now.

    Raises:
        ProviderError: There is no such parameter, or AWS does not say.
    """
    client = service_client(account, "ssm")
    with cloud_failures(f"the image of parameter {parameter}"):
        return str(client.get_parameter(Name=parameter)["Parameter"]["Value"])


class Images:
    """The images that the fleets of one environment have."""

    def __init__(self, records: StackRecords) -> None:
        self._records = records

    def pinned(self, request: InstanceRequest) -> str:
        """Return the image of a host if it is known without AWS, else an empty text."""
        image = declared_image(request)
        return str(self._read().get(_key(request, image), "")) if _is_parameter(image) else image

    def resolve(self, request: InstanceRequest, account: AwsAccount) -> str:
        """Return the image of a host, and pin nothing."""
        return self.pinned(request) or latest_image(account, declared_image(request))

    def pin(self, request: InstanceRequest, account: AwsAccount) -> str:
        """Return the image of a host; from then on the fleet keeps it."""
        known = self.pinned(request)
        if known:
            return known
        image = self.resolve(request, account)
        self._write({**self._read(), _key(request, declared_image(request)): image})
        return image

    def newest(self, request: InstanceRequest, account: AwsAccount) -> str:
        """Return the image that the parameter of a host has now, whatever is pinned; empty: it has none."""
        image = declared_image(request)
        return latest_image(account, image) if _is_parameter(image) else ""

    def forget(self, fleet: str) -> None:
        """Forget the images of a fleet that is removed: one that is declared under its name later takes the newest."""
        pins = self._read()
        kept = {key: pins[key] for key in pins if key.partition(" ")[0] != fleet}
        if kept != pins:
            self._write(kept)

    def _write(self, pins: Mapping[str, str]) -> None:
        self._records.write(OF_ENVIRONMENT, _KIND, json.dumps(pins, sort_keys=True, indent=1))

    def _read(self) -> dict[str, Any]:
        pins: dict[str, Any] = json.loads(self._records.read(OF_ENVIRONMENT, _KIND) or "{}")
        return pins


def _is_parameter(image: str) -> bool:
    return image.startswith("/")


def _key(request: InstanceRequest, parameter: str) -> str:
    place = request.endpoint
    renewal = place.get("image_renewal", 0)
    return f"{request.fleet} {place['account']} {place['region']} {parameter} {renewal}"
