from __future__ import annotations

import subprocess
import sys
import textwrap

from fleetform.cli.postponed import postpone

EXECUTED = "'email.message' in sys.modules"


def said(code: str) -> list[str]:
    """What a new Python prints that has postponed what a command does."""
    start = """
        import sys
        from fleetform.cli.postponed import postpone_all
        postpone_all()
    """
    whole = textwrap.dedent(start) + textwrap.dedent(code)
    ended = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, check=False
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_it_is_executed_when_something_is_taken():
    """Importing it executes nothing; the first name that is taken is the real one's."""
    code = f"""
        import importlib.metadata as metadata
        print({EXECUTED}, type(metadata).__name__)
        print(metadata.version("click") > "1", type(metadata).__name__)
        from importlib.metadata import Distribution, PackageNotFoundError
        print(Distribution.__module__, metadata is sys.modules["importlib.metadata"])
    """
    assert said(code) == ["False _Postponed", "True module", "importlib.metadata True"]


def test_a_function_that_is_taken_is_looked_for_when_it_is_called():
    """Whoever takes `entry_points` gets what the real one gives, and the module then has its own."""
    code = f"""
        from importlib.metadata import entry_points
        print({EXECUTED}, entry_points.__module__)
        taken = {{one.name for one in entry_points(group="console_scripts")}}
        import importlib.metadata
        print({EXECUTED}, "fleetform" in taken, importlib.metadata.entry_points.__module__)
        print(taken == {{one.name for one in importlib.metadata.entry_points(group="console_scripts")}})
    """
    assert said(code) == [
        "False fleetform.cli.postponed",
        "True True importlib.metadata",
        "True",
    ]


def test_what_it_does_not_have_it_does_not_have():
    """A name that is not there is missing as from any module."""
    code = """
        import importlib.metadata
        try:
            importlib.metadata.nothing_such
        except AttributeError as error:
            print(error)
        try:
            from importlib.metadata import nothing_such
        except ImportError as error:
            print(type(error).__name__)
        print(hasattr(importlib.metadata, "__all__"))
    """
    assert said(code) == [
        "module 'importlib.metadata' has no attribute 'nothing_such'",
        "ImportError",
        "True",
    ]


def test_threads_that_use_it_at_once_all_find_it_whole():
    """However many come while it is executed, none sees half of it."""
    code = """
        import threading, importlib.metadata
        together = threading.Barrier(8)
        found = []
        def use():
            together.wait()
            found.append(importlib.metadata.version("click"))
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=use) for _ in range(8)]
        for one in threads: one.start()
        for one in threads: one.join()
        print(len(found), len(set(found)))
    """
    assert said(code) == ["8 1"]


def test_one_that_fails_fails_again():
    """What went wrong while it was executed is told to each who asks, and not to the first alone."""
    code = """
        import importlib.metadata
        sys.modules["zipfile"] = None
        for _ in range(2):
            try:
                importlib.metadata.version
            except ImportError as error:
                print(error.name)
        del sys.modules["zipfile"]
        print(importlib.metadata.version("click") > "1")
    """
    assert said(code) == ["zipfile", "zipfile", "True"]


def test_a_plan_looks_for_no_plugins():
    """The models of a document are built without what pydantic would look for plugins with."""
    code = f"""
        import os
        os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
        from fleetform.spec.kinds.volume import Volume
        print(Volume.model_validate({{"type": "volume", "name": "data"}}).name, {EXECUTED})
    """
    assert said(code) == ["data False"]


def test_what_is_there_stays_as_it_is():
    """A module that was imported before is not touched, and one that nobody has is no mistake."""
    postpone("textwrap")
    postpone("importlib.no_such_module")
    assert sys.modules["textwrap"] is textwrap
    assert "importlib.no_such_module" not in sys.modules


def test_a_line_is_clean_already():
    """Help of one line is itself without `inspect`; any other text is what `inspect` makes of it."""
    texts = ["One line.", "", " x", "`x`", "One.\\n\\n    Two.\\n", "a\\tb", "tail  ", "Ünd\\xa0x"]
    code = f"""
        texts = [{", ".join(f'"{one}"' for one in texts)}]
        import inspect
        made = [inspect.cleandoc("One line."), "ast" in sys.modules]
        made += [inspect.cleandoc(one) for one in texts] + ["ast" in sys.modules]
        inspect.signature
        print(made == ["One line.", False, *map(inspect.cleandoc, texts), True])
        print(inspect.cleandoc.__module__, type(inspect).__name__)
    """
    assert said(code) == ["True", "inspect module"]


def test_a_plan_without_changes_inspects_nothing():
    """What a command is made of is found without `inspect`, its help included."""
    code = """
        from fleetform.cli.main import fleetform
        fleetform.get_command(None, "plan").make_context("plan", [])
        print("ast" in sys.modules)
    """
    assert said(code) == ["False"]
