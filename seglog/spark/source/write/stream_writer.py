"""The sink of the data source for streams: ``writeStream.format("seglog")``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from typing_extensions import override

from seglog.errors import SparkJobError
from seglog.spark.source.write.append_job import AppendJob
from seglog.spark.source.write.writer import StagedMessage, stage_task
from seglog.storage.files import StoreRoot

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY_ID: Final = "sql.streaming.queryId"
"""The name of Spark's task property with the id of the query.

The id is in the checkpoint: a query that is restarted from it has the same id.
"""


class MessageStreamWriter(DataSourceStreamArrowWriter):
    """Appends the rows of a stream to a store, those of each batch once.

    Args:
        root: The store directory.
        topic: Topic for all rows; None for the topic of each row.
    """

    def __init__(self, root: Path, topic: str | None) -> None:
        self._root = root
        self._topic = topic

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the rows of a task."""
        context = TaskContext.get()
        query_id = None if context is None else context.getLocalProperty(_QUERY_ID)
        if query_id is None:
            raise SparkJobError("Spark does not say which query this task is of")
        return stage_task(iterator, self._job(query_id, 0), self._topic)

    @override
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Appends the rows that all tasks of a batch staged; does nothing if that was done before."""
        staged = [message for message in messages if isinstance(message, StagedMessage)]
        if any(message.staged.rows for message in staged):
            job = self._job(staged[0].job_id, batchId)
            job.commit([message.staged for message in staged], StoreRoot(self._root))

    @override
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Removes the staged rows, if none of them was appended."""
        staged = [message for message in messages if isinstance(message, StagedMessage)]
        if staged:
            self._job(staged[0].job_id, batchId).abort(StoreRoot(self._root))

    def _job(self, query_id: str, batch_id: int) -> AppendJob:
        return AppendJob(self._root, query_id, batch_id)
