"""The writer of the data source for PySpark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from typing_extensions import override

from seglog.spark.source.write.append_job import AppendJob
from seglog.spark.source.write.journal import Staged
from seglog.spark.source.write.staging import stage
from seglog.storage.files import StoreRoot

if TYPE_CHECKING:
    import pyarrow as pa


class StagedMessage(WriterCommitMessage):
    """Reports to the driver the rows that a task staged, and their job."""

    def __init__(self, staged: Staged, job_id: str) -> None:
        super().__init__()
        self.staged = staged
        self.job_id = job_id


def stage_task(iterator: Iterator[pa.RecordBatch], job: AppendJob, topic: str | None) -> StagedMessage:
    """Stages the rows of a task."""
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    path = job.staging / f"{number:06d}-{uuid.uuid4().hex}.arrow"
    return StagedMessage(stage(iterator, path, number, topic), job.job_id)


class MessageWriter(DataSourceArrowWriter):
    """Appends rows to a store as messages.

    Args:
        job: The job that appends them.
        topic: Topic for all rows; None for the topic of each row.
    """

    def __init__(self, job: AppendJob, topic: str | None = None) -> None:
        self._job = job
        self._topic = topic

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stages the rows of a task."""
        return stage_task(iterator, self._job, self._topic)

    @override
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Appends the rows that all tasks staged."""
        staged = [message.staged for message in messages if isinstance(message, StagedMessage)]
        self._job.commit(staged, StoreRoot(self._job.root))

    @override
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes the staged rows, if none of them was appended."""
        self._job.abort(StoreRoot(self._job.root))
