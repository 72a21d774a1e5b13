"""The walk over a commit log, and what follows from it for the queues and for the findings about a store.

:mod:`seglog.storage.survey.survey` keeps a row of every record, :mod:`seglog.storage.audit` runs of records
from splits that are walked anywhere. Both hand what they saw to :mod:`~seglog.storage.scan.queue_overlays`
and :mod:`~seglog.storage.scan.conclusion`, so that they say the same of a store.
"""
