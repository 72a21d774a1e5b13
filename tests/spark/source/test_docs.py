"""The page about the data source names every column and option."""

from __future__ import annotations

from pathlib import Path

import seglog
from seglog.spark.source.columns import COLUMNS, column_row
from seglog.spark.source.options import option_names

PAGE = (Path(seglog.__file__).parent.parent / "docs" / "spark-source.md").read_text()


def test_every_column_is_described_as_the_code_has_it():
    assert [column.name for column in COLUMNS if column_row(column) not in PAGE] == []


def test_every_option_is_named():
    assert [name for name in option_names() if f"`{name}`" not in PAGE] == []
