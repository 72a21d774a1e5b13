"""Streams: the position of a stream, the end of its next batch, and the reader for PySpark."""
