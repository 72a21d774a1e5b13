"""The data that a run adds to an archive: rows made from records, and the Parquet files that tasks write.

Truth: the records of the store. Files of tasks count once a manifest lists them.
"""
