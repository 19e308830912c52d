from __future__ import annotations

import pytest

from fleetform.cli.progress.board import step_doing, step_done
from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey


@pytest.mark.parametrize(
    ("verb", "doing", "done"),
    [
        ("fleet.make", "creating fleet/local", "fleet/local: created"),
        ("volume.forget", "releasing fleet/local", "fleet/local: released, its data is kept"),
        ("new.verb", "new.verb fleet/local", "fleet/local: new.verb"),
    ],
)
def test_a_step_has_words(verb, doing, done):
    """A verb without words of its own is shown as it is, and stops nothing."""
    step = Step("key", verb, ResourceKey("fleet", "local"))
    assert (step_doing(step), step_done(step)) == (doing, done)
