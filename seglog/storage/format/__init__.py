"""Bytes and values of a RocketMQ store directory: pure codecs that know no files, sockets or clocks."""
