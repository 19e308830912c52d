from __future__ import annotations

from fleetform.spec.schema.wording import compound_examples, examples, words


def test_choices_are_taken_out_of_the_sentences():
    """What each means begins with a capital letter and ends with a stop, whatever stood there."""
    found = words(
        "How runs share it. `whole`: one at a\n time; `exact`: what each asks for. Example: `exact`.",
        ["exact", "whole", "other"],
    )
    assert found.lead == "How runs share it."
    assert found.choices == {"whole": "One at a time.", "exact": "What each asks for."}
    assert found.whole.startswith("How runs share it. `whole`: one at a time;")


def test_a_choice_that_is_only_mentioned_is_not_explained():
    """Without a colon it is a word of the sentence."""
    found = words("The state; `succeeded` if not said.", ["succeeded"])
    assert found.choices == {}
    assert found.lead == found.whole


def test_examples_are_read_as_yaml():
    """Behind `Example:` every span is a value; lists and mappings are known as such."""
    text = "A rate. Example: `0.1`, `[1, 2]`,\n`{a: b}`."
    assert examples(text) == [0.1, [1, 2], {"a": "b"}]
    assert compound_examples(text) == [("[1, 2]", [1, 2]), ("{a: b}", {"a": "b"})]
