"""The language model of a service, and the protocol in which it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from fleetform.spec.kinds.base import Model, refuse
from fleetform.spec.kinds.offers import Text
from fleetform.spec.quantities.ranges import unfit


class ChatModel(Model):
    """A language model, and the protocol of its service."""

    type: Literal["chat"] | None = None
    """The type of the model. Example: `chat`."""

    name: Text
    """The name of the model, as clients send it. Example: `meta-llama/Llama-3.1-8B-Instruct`."""

    format: Literal["openai", "tgi"]
    """
    The protocol of the service. `openai`: the API of OpenAI. `tgi`: the API of Text Generation
    Inference. Example: `openai`.
    """

    prefix: Text | None = None
    """The path prefix of the API, with `format: openai`. Default: `/v1`. Example: `/v1`."""

    chat_template: Text | None = None
    """
    The chat template, with `format: tgi`. Default: the template of the model. Example: `"{% for m
    in messages %}{{ m.content }}{% endfor %}"`.
    """

    eos_token: Text | None = None
    """
    The token that ends an answer, with `format: tgi`. Default: the token of the model. Example:
    `</s>`.
    """


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
