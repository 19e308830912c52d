"""Fields of a service and of a dev environment: what is refused, in which words, and what it comes to."""

from __future__ import annotations

import pytest

from fleetform.spec.kinds.synonyms import fields_by_word
from fleetform.spec.schema import MODELS
from fleetform.spec.tree.validation_errors import _model_at
from unit.spec.trees import codes, load

SERVICE = "type: service\nname: chat\ncommands: [python serve.py]\nport: 8000\n"
BARE = "type: service\nname: chat\nport: 8000\n"
DESK = "type: dev-environment\nname: desk\n"
SCALING = "scaling: {metric: rps, target: 10}\n"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("type: service\nname: chat\ncommands: [x]\n", "missing-field", "`port` is missing"),
        (BARE, "missing-field", "`commands` is missing"),
        (f"{SERVICE}replicas: 0..4\n", "missing-field", "Add `scaling:"),
        (f"{SERVICE}replicas: 2\n{SCALING}", "contradiction", "Write a range"),
        (f"{SERVICE}replicas: 1..\n{SCALING}", "bad-value", "`1..5`"),
        (f"{SERVICE}replicas: 0..4\nscaling: {{metric: cpu, target: 1}}\n", "bad-value", "`rps`"),
        (f"{SERVICE}replicas: 0..4\nscaling: {{metric: rps, target: 0}}\n", "bad-value", "one in a minute"),
        (f"{SERVICE}replicas: 0..4\n{SCALING[:-2]}, window: 45s}}\n", "bad-value", "`300s`"),
        (f"{SERVICE}rate_limits: [{{rps: 1}}, {{prefix: /, rps: 2}}]\n", "said-twice", "hold for `/`"),
        (f"{SERVICE}rate_limits: [{{rps: 1, prefix: 'a b'}}]\n", "bad-path", "Begin with `/`"),
        (f"{SERVICE}rate_limits: [{{rps: 1, key: {{type: header}}}}]\n", "missing-field", "X-API-Key"),
        (f"{SERVICE}probes: [{{type: http}}, {{type: http}}]\n", "said-twice", "already in the list"),
        (f"{SERVICE}probes: [{{type: http, body: x}}]\n", "contradiction", "`method: post`"),
        (f"{SERVICE}probes: [{{type: http, url: health}}]\n", "bad-path", "Begin with `/`"),
        (f"{SERVICE}probes: [{{type: http, path: /}}]\n", "unknown-field", "Did you mean `url`?"),
        (f"{SERVICE}model: {{name: a, format: tgi, prefix: /v1}}\n", "contradiction", "does not go with"),
        (f"{SERVICE}gateway: a/b/c\n", "bad-name", "PROJECT/NAME"),
        (f"{SERVICE}ports: [1]\n", "unknown-field", "Did you mean `port`?"),
        (f"{SERVICE}healthcheck: x\n", "unknown-field", "Did you mean `probes`?"),
        (f"{SERVICE}readinessProbe: x\n", "unknown-field", "Did you mean `probes`?"),
        (f"{BARE}groups: [{{replicas: 1, commands: [x]}}]\n{SCALING}", "contradiction", "into the groups"),
        (f"{BARE}replicas: [{{count: 1, commands: [x]}}]\n{SCALING}", "contradiction", "into the groups"),
        (f"{BARE}replicas: [{{count: 1, replicas: 1, commands: [x]}}]\n", "said-twice", "Keep `replicas`"),
        (f"{BARE}replicas: [{{commands: [x]}}]\n", "missing-field", "`replicas` is missing"),
        (f"{BARE}groups: [{{replicas: 1}}]\n", "missing-field", "neither `commands` nor an `image`"),
        (f"{BARE}groups: [{{replicas: 2, commands: [x], router: {{type: smg}}}}]\n", "contradiction", "`replicas: 1`"),
        (f"{BARE}python: 3.12\ngroups: [{{replicas: 1, commands: [x], docker: true}}]\n", "contradiction", "Set it for the service, or in each group."),
        (f"{DESK}ide: vim\n", "bad-value", "`vscode`"),
        (f"{DESK}version: 1.2.3\n", "contradiction", "`ide` names none"),
        (f"{DESK}ide: windsurf\nversion: 1.2.3\n", "bad-value", "behind an `@`"),
        (f"{DESK}dstack: true\ninactivity_duration: 1h\n", "contradiction", "so the inactivity would never begin."),
        (f"{DESK}commands: [x]\n", "unknown-field", "Did you mean `init`?"),
        (f"{DESK}entrypoint: x\n", "unknown-field", "Did you mean `init`?"),
    ],
)  # fmt: skip
def test_refused(tmp_path, text, code, words):
    """Each mistake has its code, and words that say what to do."""
    told = [
        one.code for one in load(tmp_path, text).errors if words in f"{one.detail} {one.advice}"
    ]
    assert told == [code]


@pytest.mark.parametrize(
    ("field", "name", "canonical"),
    [
        ("replicas: ..4\n" + SCALING, "replicas", {"min": 0, "max": 4}),
        ("replicas: 2", "replicas", {"min": 2, "max": 2}),
        ("port: '80:8000'", "port", 8000),
        ("port: {local_port: 80, container_port: 8000}", "port", 8000),
        ("model: llama", "model", {"name": "llama", "format": "openai"}),
        ("gateway: {project: vision, name: public}", "gateway", "vision/public"),
        ("rate_limits: {rps: 0.5}", "rate_limits", [{"rps": 500_000}]),
        ("https: auto", "https", "auto"),
    ],
)
def test_canonical(tmp_path, field, name, canonical):
    """One meaning has one spelling."""
    loaded = load(tmp_path, f"{SERVICE.replace('port: 8000', '')}{field}\n" + (
        "" if name == "port" else "port: 8000\n"
    ))  # fmt: skip
    assert loaded.errors == ()
    assert loaded.desired is not None
    (held,) = loaded.desired.beyond.values()
    assert held.declared.document[name] == canonical


@pytest.mark.parametrize("count", ["replicas", "count"])
def test_groups_in_replicas(tmp_path, count):
    """Groups may stand in `replicas`, as old versions of dstack have them, and are groups."""
    text = f"{BARE}replicas:\n  - {{name: small, {count}: 1, commands: [python serve.py]}}\n"
    loaded = load(tmp_path, text)
    assert codes(loaded) == ["not-supported"]
    assert loaded.desired is not None
    (held,) = loaded.desired.beyond.values()
    assert [group["name"] for group in held.declared.document["groups"]] == ["small"]
    assert "replicas" not in held.declared.document
    (group,) = held.declared.document["groups"]
    assert group["replicas"] == {"min": 1, "max": 1}
    (wrong,) = load(tmp_path, text.replace(f"{count}: 1", f"{count}: -1")).errors
    assert wrong.place.line == 5


@pytest.mark.parametrize("text", [SERVICE, DESK, f"{SERVICE}replicas: 2\nprobes: []\n"])
def test_a_kind_is_held_in_one_note(tmp_path, text):
    """Nothing of them is carried out, so that no field is told by itself."""
    loaded = load(tmp_path, text)
    assert codes(loaded) == ["not-supported"]
    assert loaded.findings[0].place.line == 1
    assert loaded.desired is not None
    assert len(loaded.desired.beyond) == 1


def test_what_people_mean_is_a_field():
    """Each word of others leads to a field that there is, and is none itself."""
    for part, words in fields_by_word().items():
        kind, *steps = part.split(".")
        model = _model_at(MODELS[kind], steps)
        for word, field in words.items():
            path = field.split(".")
            for length in range(len(path)):
                owner = _model_at(model, path[:length])
                assert path[length] in owner.model_fields, (part, word, field)
            assert word == field or word not in model.model_fields, (part, word)
