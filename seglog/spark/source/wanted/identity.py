"""Identifies the store of a path or an address, however it is spelled."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from seglog.errors import InvalidArgumentError
from seglog.spark.remote_files import is_address

_FILE_URI: Final = re.compile(r"^file:(?://(?:localhost)?)?/(?!/)", re.IGNORECASE)
_SAME_SCHEME: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_WHICH_SERVER: Final = "endpoint_override"
"""The only setting in an address that identifies a store: two servers may have a bucket of the same name."""


def store_key(path: str) -> str:
    """Returns the absolute path of a store, or its address without the parts that only affect the connection.

    The key of a key is the key itself. Links are not followed: a link may lead to the new place of a moved
    store.
    """
    if _FILE_URI.match(path):
        path = "/" + unquote(_FILE_URI.sub("", path))
    if not is_address(path):
        # Only the file system can resolve ".." after a link.
        absolute = os.path.realpath(path) if ".." in path.split("/") else os.path.abspath(path)  # noqa: PTH100
        return "/" + absolute.lstrip("/")
    parts = urlsplit(path)
    scheme = _SAME_SCHEME.get(parts.scheme, parts.scheme)
    user, _at, host = parts.netloc.rpartition("@")
    # In an S3 address the user is an access key; in Azure's addresses it is a container.
    user = "" if scheme == "s3" else user.partition(":")[0]
    names = "/".join(name for name in parts.path.split("/") if name)
    server = [one for one in parse_qsl(parts.query) if one[0] == _WHICH_SERVER]
    plain = f"{scheme}://{user}{'@' * bool(user)}{host}/{names}"
    return f"{plain}?{urlencode(server)}" if server else plain


def real_place(path: str) -> str:
    """Returns the key of a store as :func:`store_key` does, with links followed."""
    key = store_key(path)
    return key if is_address(key) else os.path.realpath(key)


def check_distinct(paths: Iterable[str]) -> None:
    """Refuses a list with the same store twice: its messages would count twice.

    Raises:
        InvalidArgumentError: A store is named twice.
    """
    seen: dict[str, str] = {}
    for path in paths:
        place = real_place(path)
        if place in seen:
            raise same_store_twice(seen[place], path)
        seen[place] = path


def same_store_twice(one: str, other: str) -> InvalidArgumentError:
    """Returns the error for two paths that lead to the same store."""
    twice = "is named twice" if one == other else f"and {other} are the same store"
    return InvalidArgumentError(
        f"{one} {twice}: its messages would be read twice", help="name each store once"
    )
