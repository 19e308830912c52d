"""Fields of a gateway: where it stands, and its certificate."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: gateway\nname: public\nbackend: aws\nregion: eu-west-1\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("domain: https://models.example.com/", "bad-value", "Write `models.example.com`."),
        ("domain: localhost", "bad-value", "is not a domain"),
        ("certificate: {type: acme}", "bad-value", "`lets-encrypt`, `acm`, `gcp-cm`, `off`"),
        ("certificate: {type: acm}", "missing-field", "`arn` is missing"),
        ("certificate: {type: gcp-cm, arn: a, name: b}", "contradiction", "`arn` does not go with"),
        ("certificate: {type: lets-encrypt, name: b}", "contradiction", "`name` does not go with"),
        ("replicas: 0", "bad-value", "the least is 1"),
        ("domain: ${{ run.args }}.example.com", "unknown-expression", "`run` has no `args`"),
        ("domain: ${{ run.project_name }}_x", "bad-value", "is not a domain"),
        ("load_balancer: {type: nlb}", "bad-value", "`alb`"),
        ("router: {type: sglang, policy: best}", "bad-value", "`cache_aware`"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_held(tmp_path):
    """Nothing carries it out yet: one note at its type, whatever it says, and a plan holds it."""
    loaded = load(tmp_path, f"{DOCUMENT}domain: models.example.com\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 1)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["gateway/public"]


@pytest.mark.parametrize("text", ["", "null", "off", "false", "{type: off}"])
def test_no_certificate(tmp_path, text):
    """No value, `off` and `false` all say that there is no certificate."""
    desired = good(tmp_path, f"{DOCUMENT}certificate: {text}\n")
    (held,) = desired.beyond.values()
    assert held.declared.document["certificate"] == {"type": "off"}


@pytest.mark.parametrize("text", ["models.example.com", "'*.Models.example.com'"])
def test_domains_have_one_spelling(tmp_path, text):
    """`*.` in front and capital letters mean nothing."""
    desired = good(tmp_path, f"{DOCUMENT}domain: {text}\n")
    (held,) = desired.beyond.values()
    assert held.declared.document["domain"] == "models.example.com"


def test_several_replicas_need_no_balancer_of_ours(tmp_path):
    """Whoever has one of another make, or an entry of DNS for each replica, may do without."""
    (held,) = good(tmp_path, f"{DOCUMENT}replicas: 2\n").beyond.values()
    assert held.declared.document["replicas"] == 2


def test_a_domain_may_name_the_project(tmp_path):
    """The expression is kept as it is written, and held back: nothing fills it in yet."""
    text = f"{DOCUMENT}domain: ${{{{ run.project_name }}}}.Example.com\n"
    (held,) = good(tmp_path, text).beyond.values()
    assert held.declared.document["domain"] == "${{ run.project_name }}.example.com"
    assert "run.project_name" in {one.field for one in held.obstacles}
