"""
A module that others import and hardly use: it is executed when somebody asks it for something.

Pydantic imports `importlib.metadata` to look for plugins, and does so where it is told to look for
none: with it come archives, mail and sockets, a fourteenth of a plan after an edit (ADR 21).

Click imports `inspect`, and with it Python's own parser, to clean the indentation of help texts that
have none.

What is imported is the module itself, not yet executed. Whoever takes any name from it has it
executed first, and so cannot tell the difference. A few functions can be taken without: each stands
for the one of its name, which is looked for when it is called. So nothing depends on what a
library does with the module; it can only be as slow as it was.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

__all__ = ["postpone", "postpone_all"]

# One for all: the modules that one of them imports wait for none of the others.
_LOCK = threading.RLock()
_EXECUTING: set[str] = set()


def postpone_all() -> None:
    """Postpone what click and pydantic import and, for us, do not use."""
    postpone("importlib.metadata", entry_points=_unknown)
    postpone("inspect", cleandoc=_clean_already)


def postpone(name: str, **functions: Callable[..., Any]) -> None:
    """
    Have a module of the standard library executed only when something of it is used.

    Args:
        name: With its package, which is imported. Nothing is done where the module is there already.
        functions: What may be taken from it without it being executed. Each says what the function
            of that name gives for the same arguments, or None where the module has to be asked.
    """
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None:
        return
    module = module_from_spec(spec)
    for function, known in functions.items():
        vars(module)[function] = _called_later(module, function, known)
    module.__class__ = _Postponed
    sys.modules[name] = module
    package, _, last = name.rpartition(".")
    if package:
        setattr(sys.modules[package], last, module)


class _Postponed(ModuleType):
    """A module that has not been executed; afterwards it is of the usual class."""

    def __getattr__(self, name: str) -> Any:
        _execute(self)
        if type(self) is ModuleType or name in vars(self):
            return getattr(self, name)
        # It asks itself for it while it is executed, and has it no more than any other would.
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)


def _unknown(**_: Any) -> None:
    """Nothing is known of it here."""


def _clean_already(doc: str) -> str | None:
    """A single line that begins with a word; what more there is in a text is for `inspect` to say."""
    return doc if doc[:1].isalnum() and "\n" not in doc and "\t" not in doc else None


def _called_later(module: ModuleType, name: str, known: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if type(module) is _Postponed and (answer := known(*args, **kwargs)) is not None:
            return answer
        _execute(module)
        return getattr(module, name)(*args, **kwargs)

    return call


def _execute(module: ModuleType) -> None:
    # Other threads wait here until it is whole.
    with _LOCK:
        if type(module) is ModuleType or module.__name__ in _EXECUTING:
            return
        assert module.__spec__ is not None
        assert module.__spec__.loader is not None
        _EXECUTING.add(module.__name__)
        try:
            module.__spec__.loader.exec_module(module)
            module.__class__ = ModuleType
        finally:
            _EXECUTING.remove(module.__name__)
