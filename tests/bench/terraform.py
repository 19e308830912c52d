"""
Terraform's side of a bench: the same number of resources that cost nothing to make.

`terraform_data` is built in: it needs no provider, no registry and no network, and making one is
writing it down. A state of ten thousand is written by hand, in the form of `terraform.tfstate`,
since making it takes Terraform most of an hour; its own plan then says that nothing differs.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from measuring import Measured, expect, measure_tree

__all__ = ["Terraform", "find"]

_PROVIDER = 'provider["terraform.io/builtin/terraform"]'
_FLAGS = ("-input=false", "-no-color")


def find() -> str | None:
    """The program, where it is installed."""
    return shutil.which("terraform")


class Terraform:
    """
    One folder with a configuration.

    Args:
        program: Terraform's own.
        folder: Made here.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        folder.mkdir()

    def write(self, count: int, *, changed: int | None = None) -> None:
        """Declare so many resources, one of them with another value."""
        text = "".join(
            f'resource "terraform_data" "{_name(number)}" {{\n'
            f"  input = {json.dumps(_value(number, is_changed=number == changed))}\n}}\n"
            for number in range(count)
        )
        (self._folder / "main.tf").write_text(text)

    def write_each(self, count: int) -> None:
        """Declare so many elements of one resource."""
        # Its own `range` gives 1024 at most.
        keys = json.dumps([str(number) for number in range(count)])
        text = (
            'resource "terraform_data" "sweep" {\n'
            f"  for_each = toset({keys})\n  input    = each.key\n}}\n"
        )
        (self._folder / "main.tf").write_text(text)

    def write_state(self, count: int) -> None:
        """Write down so many resources as if they had been made."""
        state = {
            "version": 4,
            "terraform_version": "1.0.0",
            "serial": 1,
            "lineage": "6d9e6d1e-0000-4000-8000-000000000000",
            "outputs": {},
            "resources": [_made(number) for number in range(count)],
            "check_results": None,
        }
        (self._folder / "terraform.tfstate").write_text(json.dumps(state))

    def begin(self) -> None:
        """What has to be done once in a folder; not measured."""
        expect(self._run("init", "-input=false"))

    def plan(self, *arguments: str, says: str) -> Measured:
        """Plan, and see that the plan is the one that is meant."""
        measured = expect(self._run("plan", *_FLAGS, *arguments))
        if says not in measured.output:
            raise SystemExit(measured.output[-2000:])
        return measured

    def apply(self) -> Measured:
        """Make everything that is declared."""
        return expect(self._run("apply", *_FLAGS, "-auto-approve"))

    def _run(self, *arguments: str) -> Measured:
        # Nothing asks whether there is a newer one while the clock runs.
        environment = {**os.environ, "CHECKPOINT_DISABLE": "1"}
        return measure_tree(
            [self._program, *arguments], environment=environment, folder=self._folder
        )


def address(number: int) -> str:
    """As `-target` takes it."""
    return f"terraform_data.{_name(number)}"


def _name(number: int) -> str:
    return f"r{number:06d}"


def _value(number: int, *, is_changed: bool = False) -> str:
    return f"another {number}" if is_changed else f"value {number}"


def _made(number: int) -> dict[str, object]:
    value = {"value": _value(number), "type": "string"}
    return {
        "mode": "managed",
        "type": "terraform_data",
        "name": _name(number),
        "provider": _PROVIDER,
        "instances": [
            {
                "schema_version": 0,
                "attributes": {
                    "id": f"00000000-0000-4000-8000-{number:012d}",
                    "input": value,
                    "output": value,
                    "triggers_replace": None,
                },
                "sensitive_attributes": [],
            }
        ],
    }
