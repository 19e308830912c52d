"""How offers are named."""

from __future__ import annotations

import pytest

from fleetform.model.offers import offer_text_of_each, priced_offer_text

PLACE = {"instance_type": "g5.xlarge", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ({**PLACE, "zone": "us-east-1a", "spot": True}, "g5.xlarge in us-east-1a (spot), unknown price"),
        ({**PLACE, "price_micros": 1_006_000}, "g5.xlarge in us-east-1, $1.01/h"),
        ({"instance_type": "g5.xlarge"}, "g5.xlarge, unknown price"),
    ],
)  # fmt: skip
def test_an_offer_has_the_place_and_the_price_that_are_known(terms, text):
    """Of an instance of an earlier release nothing but the type may be known."""
    assert priced_offer_text(terms) == text


def test_the_price_of_each_host_can_be_multiplied():
    """Two at $1.006 are $2.012 an hour, and no sum of rounded prices."""
    assert (
        offer_text_of_each({**PLACE, "price_micros": 1_006_000})
        == "g5.xlarge in us-east-1, $1.006/h each"
    )
    assert offer_text_of_each(PLACE) == "g5.xlarge in us-east-1, unknown price"
