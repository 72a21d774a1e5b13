"""Frames of a connection: length, header in one of two forms, body.

Pure: bytes to frames and back; no sockets, no clock.

Called by the codec of requests and answers.
Truth: what official clients and brokers send.
"""
