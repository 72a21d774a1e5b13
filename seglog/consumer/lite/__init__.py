"""Polled consumers: the application polls for messages, instead of a listener that is called.

Called by applications.
Truth: memory only; brokers have the committed offsets.
"""

from seglog.consumer.lite.lite_pull import LitePullConsumer as LitePullConsumer
