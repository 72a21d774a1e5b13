"""What a run adds to an archive: its rows, made of records, and the Parquet files that tasks write of them.

Truth: the records of the store. What tasks wrote counts once a manifest names it.
"""
