"""What stands in the place of values that nobody is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleetform.model.redaction import SEALED_MARK, Seal, sensitive_part

SEAL = Seal("e" * 32)


def test_a_version_tells_values_apart_and_environments_too():
    """Equal values have one version within an environment; other values, and elsewhere, another."""
    assert SEAL.version("hunter2") == SEAL.version("hunter2")
    assert SEAL.version("hunter2") != SEAL.version("hunter3")
    assert SEAL.version("hunter2") != Seal("f" * 32).version("hunter2")
    assert SEAL.version("hunter2").startswith(SEALED_MARK)
    assert len(SEAL.version("hunter2")) == len(SEALED_MARK) + 12


def test_a_reference_is_no_secret_and_what_looks_like_a_version_is_one():
    """`${{ secrets.x }}` names what is hidden; whatever else somebody writes is sealed."""
    assert SEAL.version("${{ secrets.key }}") == "${{ secrets.key }}"
    for written in ("sensitive:hunter2", SEAL.version("hunter2")):
        assert SEAL.version(written) not in {written, SEAL.version("hunter2")}
        shown = SEAL.value("run", "", {"env": {"A_TOKEN": written}})
        assert shown["env"]["A_TOKEN"] == SEAL.version(written)


def test_a_digest_is_shown_as_another_that_is_equal_where_it_is():
    """Of one environment; it is not the digest, and no version of a text."""
    assert SEAL.digest("abc") == SEAL.digest("abc")
    assert len({SEAL.digest("abc"), SEAL.digest("abd"), Seal("f" * 32).digest("abc"), "abc"}) == 4
    assert SEAL.digest("abc")[:12] not in SEAL.version("abc")
    assert SEAL.digest("") == ""


def test_a_part_counts_as_sealed_by_the_whole_form_of_a_version():
    """What only begins like one is what somebody wrote where nothing is sensitive."""
    assert sensitive_part({"NOTE": "sensitive: handle with care", "X": "sensitive:abc"}) == {}
    assert sensitive_part([f"a://b:{SEAL.version('x')}@c"]) == [True]


def test_a_document_is_sealed_where_it_is_sensitive_and_nowhere_else():
    """By the field, by the variable's name, within an address, at any depth."""
    document = {
        "type": "task",
        "env": {"LR": "0.1", "HF_TOKEN": "hunter2"},
        "registry_auth": {"username": "bot", "password": "hunter2"},
        "commands": ["git clone https://bot:hunter2@git.example.org/x && echo a@b"],
        "repos": [{"url": "https://hunter2@git.example.org/x"}],
        "nodes": 2,
    }
    shown = SEAL.value("run", "", document)
    assert "hunter2" not in str(shown)
    version = SEAL.version("hunter2")
    assert shown["env"] == {"LR": "0.1", "HF_TOKEN": version}
    assert shown["commands"] == [f"git clone https://bot:{version}@git.example.org/x && echo a@b"]
    assert shown["registry_auth"]["username"] == "bot"
    assert sensitive_part(shown) == {
        "env": {"HF_TOKEN": True},
        "registry_auth": {"password": True},
        "commands": [True],
        "repos": [{"url": True}],
    }


def test_what_has_nothing_sensitive_is_the_same_object():
    """Ten thousand plain documents are passed through, not copied."""
    document = {"type": "task", "commands": ["true"], "env": {"LR": "1"}}
    assert SEAL.value("run", "", document) is document


_SECRETS = st.text(st.characters(categories=("L", "N")), min_size=8, max_size=20)


@given(
    _SECRETS,
    st.recursive(
        st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
    ),
)
def test_sealing_changes_nothing_but_what_is_sealed(secret, rest):
    """Whatever else a document holds is there as it was, at whatever depth."""
    shown = SEAL.value("run", "", {"env": {"A_TOKEN": secret}, "tags": rest})
    assert secret not in str(shown["env"])
    assert shown["tags"] == rest
