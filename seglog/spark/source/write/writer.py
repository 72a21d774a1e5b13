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
    """Reports to the driver what a task put aside, for which job."""

    def __init__(self, staged: Staged, job_id: str) -> None:
        super().__init__()
        self.staged = staged
        self.job_id = job_id


def stage_task(iterator: Iterator[pa.RecordBatch], job: AppendJob, topic: str | None) -> StagedMessage:
    """Puts the rows of a task aside."""
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    path = job.staging / f"{number:06d}-{uuid.uuid4().hex}.arrow"
    return StagedMessage(stage(iterator, path, number, topic), job.job_id)


class MessageWriter(DataSourceArrowWriter):
    """Appends rows to a store as messages.

    Args:
        job: What writes them.
        topic: Where all rows go; None for what each says.
    """

    def __init__(self, job: AppendJob, topic: str | None = None) -> None:
        self._job = job
        self._topic = topic

    @override
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Puts the rows of a task aside."""
        return stage_task(iterator, self._job, self._topic)

    @override
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Appends what all tasks put aside."""
        staged = [message.staged for message in messages if isinstance(message, StagedMessage)]
        self._job.commit(staged, StoreRoot(self._job.root))

    @override
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what tasks put aside, if nothing of it was appended."""
        self._job.abort(StoreRoot(self._job.root))
