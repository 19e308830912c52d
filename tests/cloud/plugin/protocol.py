"""
The provider's protocol, without the rest of the Pulumi library.

Each command of the CLI starts the plugin anew, and importing that library was a third of its start. So
the two packages above the protocol are empty here, in this process.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType

for _name in ("pulumi", "pulumi.runtime"):
    _found = find_spec(_name)
    assert _found is not None
    _package = ModuleType(_name)
    _package.__path__ = list(_found.submodule_search_locations or ())
    sys.modules[_name] = _package

from pulumi.runtime.proto import plugin_pb2  # noqa: E402 -- below the empty packages
from pulumi.runtime.proto import provider_pb2 as proto  # noqa: E402 -- as above
from pulumi.runtime.proto import provider_pb2_grpc as rpc  # noqa: E402 -- as above

__all__ = ["plugin_pb2", "proto", "rpc"]
