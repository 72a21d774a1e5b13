"""Client ids: ``address@instance``, followed by ``@unit`` if there is a unit.

The instance is ``process#life``, which differs in each run of a client. A broadcasting client keeps its name
instead, since its offset file is found by it. All clients on a machine that keep their name and were given
none are called ``DEFAULT``.

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
        address: The address of this machine.
        process_id: Defaults to this process's.
        life: Distinguishes clients of one process; random by default.
    """
    return f"{address}@{os.getpid() if process_id is None else process_id}#{life or secrets.token_hex(6)}"


def as_name(name: str, value: str) -> str:
    """Returns an id, or a part of one, given by an application.

    Args:
        name: The name of the argument.
        value: Its value.

    Raises:
        InvalidArgumentError: It is not text, cannot be sent, or is blank.
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
    """Returns an id, made from the settings of a client as in Java.

    Args:
        address: The address of this machine.
        instance_name: The application's choice; ``DEFAULT`` counts as none, as in Java.
        unit_name: The unit of the client; blank for none.
        keeps_its_name: Whether the id is the same in the next run even without a given name.

    Raises:
        InvalidArgumentError: A name is not text or cannot be sent, or that of the instance is blank.
    """
    name = DEFAULT_INSTANCE if instance_name is None else as_name("instance_name", instance_name)
    is_without = name == DEFAULT_INSTANCE and not keeps_its_name
    made = new_client_id(address) if is_without else f"{address}@{name}"
    if unit_name is None or not as_unicode("unit_name", unit_name).strip():
        return made
    return f"{made}@{unit_name}"
