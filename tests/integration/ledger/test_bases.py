"""An environment on a base, and a manager that keeps it so."""

from __future__ import annotations

import signal
import time

from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task


def test_serve_follows_the_base(lab: Lab) -> None:
    """A document that appears in the base is carried out, long before serve looks at everything."""
    base = lab.folder / "base"
    base.mkdir()
    (base / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    environment = lab.tree / "environment.yaml"
    environment.write_text(
        environment.read_text(encoding="utf-8") + "extends: ../base\nvalues: {word: hello}\n",
        encoding="utf-8",
    )
    serve = lab.start("serve")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "local" not in lab.run("fleet", "list").stdout:
        assert time.monotonic() < deadline, "serve does not make the fleet"
        time.sleep(0.1)
    edited_at = time.monotonic()
    (base / "one.yaml").write_text(task("one", lab.says("${{ values.word }}")), encoding="utf-8")
    lab.wait_until_said("hello")
    # Half of what serve waits before it looks at a tree that did not change (`controllers.tree`).
    assert time.monotonic() - edited_at < 15
    serve.send_signal(signal.SIGTERM)
    code, output = lab.finish(serve)
    assert code in {0, 130}, output
