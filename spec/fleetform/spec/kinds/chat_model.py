"""
The language model that a service serves, for an endpoint that all models share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from fleetform.spec.kinds.base import Model, refuse
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import unfit


class ChatModel(Model):
    """A model, and how its service speaks."""

    type: Literal["chat"] | None = None
    """What it does. Example: `chat`."""

    name: Text
    """The model's name, as those who use it say it. Example: `meta-llama/Llama-3.1-8B-Instruct`."""

    format: Literal["openai", "tgi"]
    """
    What the service speaks. `openai`: the protocol of that name. `tgi`: that of Text Generation
    Inference. Example: `openai`.
    """

    prefix: Text | None = None
    """Where the protocol begins, with `openai`: `/v1` if not said. Example: `/v1`."""

    chat_template: Text | None = None
    """How a conversation becomes one text, with `tgi`; the model's own if not said. Example: `"{% for m in messages %}{{ m.content }}{% endfor %}"`."""

    eos_token: Text | None = None
    """What ends an answer, with `tgi`; the model's own if not said. Example: `</s>`."""


def _chat_model(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value, "format": "openai"}
    if isinstance(value, Mapping | ChatModel):
        return value
    raise refuse("wrong-type", str(unfit(value, "a model's name")))


def _check_chat_model(value: ChatModel) -> ChatModel:
    others = {"openai": ("chat_template", "eos_token"), "tgi": ("prefix",)}[value.format]
    for name in others:
        if getattr(value, name) is not None:
            raise refuse(
                "contradiction",
                f"`{name}` does not go with `format: {value.format}`.",
                "Remove one of the two.",
            )
    return value


ChatModelSpec = Annotated[
    ChatModel,
    BeforeValidator(_chat_model, json_schema_input_type=str | ChatModel),
    AfterValidator(_check_chat_model),
]
