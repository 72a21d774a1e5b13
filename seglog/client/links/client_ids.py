"""What clients are called: ``address@instance``, with ``@unit`` behind where there is a unit.

The instance is ``process#life``, another one in each life of a client. A client that broadcasts keeps its
name instead: Java's finds the file of its offsets by it. All clients on a machine that keep their name and
were given none are ``DEFAULT``.

Source: ``ClientConfig.java buildMQClientId, changeInstanceNameToPID``, ``DefaultMQPushConsumerImpl.java
start``.
"""

from __future__ import annotations

import os
import secrets
from typing import Final

from seglog.arguments import as_unicode, refusal

DEFAULT_INSTANCE: Final = "DEFAULT"
LOOPBACK: Final = "127.0.0.1"


def new_client_id(address: str = LOOPBACK, process_id: int | None = None, life: str | None = None) -> str:
    """Returns an id that no other client has.

    Args:
        address: Of this machine.
        process_id: Defaults to this process's.
        life: Distinguishes clients of one process; random by default.
    """
    return f"{address}@{os.getpid() if process_id is None else process_id}#{life or secrets.token_hex(6)}"


def as_name(name: str, value: str) -> str:
    """Returns an id, or a part of one, that an application gives.

    Args:
        name: Of the argument.
        value: What was given.

    Raises:
        InvalidArgumentError: It is no text, or none that can be sent, or blank.
    """
    if not as_unicode(name, value).strip():
        raise refusal(name, value, "a name that is not blank")
    return value


def named_client_id(
    address: str,
    instance_name: str | None = None,
    unit_name: str | None = None,
    *,
    keeps_its_name: bool = False,
) -> str:
    """Returns an id as Java makes it of the settings of a client.

    Args:
        address: Of this machine.
        instance_name: Of the application's choice; ``DEFAULT`` is as good as none, as in Java.
        unit_name: Of the unit that the client is in; blank for none.
        keeps_its_name: Whether the id is the same in the next life even where it was given no name.

    Raises:
        InvalidArgumentError: A name is no text, or none that can be sent, or that of the instance is blank.
    """
    name = DEFAULT_INSTANCE if instance_name is None else as_name("instance_name", instance_name)
    is_without = name == DEFAULT_INSTANCE and not keeps_its_name
    made = new_client_id(address) if is_without else f"{address}@{name}"
    if unit_name is None or not as_unicode("unit_name", unit_name).strip():
        return made
    return f"{made}@{unit_name}"
