"""Which paths and addresses are those of one store."""

from __future__ import annotations

import pytest

from seglog.errors import InvalidArgumentError
from seglog.spark.audit import audit_stores
from seglog.spark.reconcile.stores import reconcile_stores
from seglog.spark.source.wanted.identity import check_distinct, store_key
from seglog.spark.source.wanted.paths import expand_paths

KEYS = {
    "/a/s": "/a/s",
    "/a/s/": "/a/s",
    "//a//s": "/a/s",
    "file:/a/s": "/a/s",
    "file:///a/s%20t": "/a/s t",
    "file://localhost/a/s": "/a/s",
    "s3://key:secret@bucket/x//store/?region=eu-west-1": "s3://bucket/x/store",
    "s3a://bucket/x/store": "s3://bucket/x/store",
    "s3://bucket/x?region=e&endpoint_override=h%3A9": "s3://bucket/x?endpoint_override=h%3A9",
    "hdfs://user@name:9000/x/": "hdfs://user@name:9000/x",
    "abfs://container:secret@account.dfs.core.windows.net/x": "abfs://container@account.dfs.core.windows.net/x",
}


@pytest.mark.parametrize(("spelt", "key"), KEYS.items(), ids=KEYS)
def test_a_key_says_where_a_store_is_and_nothing_of_the_connection(spelt, key):
    assert store_key(spelt) == key == store_key(key)


def test_a_store_that_is_named_twice_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "one")
    one = str(tmp_path / "one")
    check_distinct([one, str(tmp_path / "two")])
    with pytest.raises(InvalidArgumentError, match="is named twice"):
        check_distinct([one, one])
    for other in (f"{one}/", f"file://{one}", str(tmp_path / "link")):
        with pytest.raises(InvalidArgumentError, match="are the same store"):
            check_distinct([one, other])


@pytest.fixture
def stores(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name / "commitlog").mkdir(parents=True)
    (tmp_path / "link").symlink_to("one")
    return tmp_path


@pytest.mark.parametrize("other", ["{}/one", "{}/one/", "file:{}/one", "{}/link"])
def test_paths_that_lead_to_one_store_are_refused(stores, other):
    with pytest.raises(InvalidArgumentError, match="its messages would be read twice"):
        expand_paths((f"{stores}/one", f"{stores}/two", other.format(stores)))


def test_what_globs_find_twice_is_read_once(stores):
    there = [f"{stores}/one", f"{stores}/two", f"{stores}/three"]
    assert list(expand_paths((f"{stores}/t*", f"{stores}/*o", f"{stores}/one"))) == [
        f"{stores}/three",
        f"{stores}/two",
        f"{stores}/one",
    ]
    assert sorted(expand_paths((f"{stores}/one", f"{stores}/*"))) == sorted(there)
    assert len(expand_paths((f"{stores}/*",))) == 3


def test_an_audit_of_a_store_that_is_named_twice_is_refused(stores):
    with pytest.raises(InvalidArgumentError, match="is named twice"):
        audit_stores([stores / "one", stores / "two", stores / "one"])
    with pytest.raises(InvalidArgumentError, match="are the same store"):
        reconcile_stores([stores / "one", stores / "link"])
