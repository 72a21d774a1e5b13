"""Consumers that are polled: the application asks for messages, in place of a listener that is called.

Called by applications.
Truth: memory only; brokers have what is committed.
"""

from seglog.consumer.lite.lite_pull import LitePullConsumer as LitePullConsumer
