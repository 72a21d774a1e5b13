"""Exchange: messages as rows of JSON lines or Parquet, from a store and into a store.

Called by ``seglog export``, ``seglog import`` and the Spark writer.
Truth: a row has all fields of a record.
"""

from seglog.doctor.exchange.export import Selection as Selection
from seglog.doctor.exchange.export import iter_rows as iter_rows
from seglog.doctor.exchange.import_rows import Import as Import
from seglog.doctor.exchange.import_rows import check_row as check_row
from seglog.doctor.exchange.parquet_rows import read_parquet as read_parquet
from seglog.doctor.exchange.parquet_rows import write_parquet as write_parquet
