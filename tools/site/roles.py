"""An extension of Griffe: adapts docstrings for the pages of the API.

Roles in docstrings, such as ``:class:``, are shown as code. A method without a docstring gets that of the
method that it overrides. A store gets the calls of its base, which the kernels may override.
"""

from __future__ import annotations

import re
from typing import Final

from griffe import Alias, Class, Extension, Module, Object
from typing_extensions import override

ROLE: Final = re.compile(r":(?:attr|class|data|func|meth|mod):`(~?)([^`]+)`")
CALLS: Final = "seglog.storage.writes.calls"


def plain(docstring: str) -> str:
    """Returns a docstring in which roles are code; ``~`` leaves only the last name."""
    return ROLE.sub(lambda role: f"`{role[2].rpartition('.')[2] if role[1] else role[2]}`", docstring)


def classes(module: Module) -> list[Class]:
    """Returns the classes of a module and of all modules within it."""
    found = list(module.classes.values())
    for part in module.modules.values():
        if isinstance(part, Module):
            found += classes(part)
    return found


def inherit(each: Class) -> None:
    """Gives methods without a docstring the docstring of the method that they override."""
    mro = each.mro()
    for name, member in each.members.items():
        if isinstance(member, Object) and not member.docstring and not name.startswith("_"):
            above = (base.members[name] for base in mro if name in base.members)
            member.docstring = next((one.docstring for one in above if one.docstring), None)


class Readable(Extension):
    """Changes docstrings as they are loaded, and the package when it is complete."""

    @override
    def on_object(self, *, obj: Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = plain(obj.docstring.value)

    @override
    def on_package(self, *, pkg: Module, **_: object) -> None:
        if pkg.name == "seglog":
            module = pkg[CALLS.removeprefix("seglog.")]
            module.set_member("Calls", Alias("Calls", f"{CALLS}.PythonCalls", parent=module))
            for each in classes(pkg):
                inherit(each)
