"""Bodies that are JSON: values to text in both of Java's dialects, and back.

Pure. What a body is made of stands in tables of fields, from which reading and writing both follow.

Called by the table of exchanges, and by clients for what brokers only pass on.
Truth: what official clients and brokers send.
"""

from seglog.remoting.body_json.body_codec import BodyCodec as BodyCodec
from seglog.remoting.body_json.dialects import Dialect as Dialect
from seglog.remoting.body_json.running_bodies import CONSUMED_DIRECTLY as CONSUMED_DIRECTLY
from seglog.remoting.body_json.running_bodies import RUNNING_INFO as RUNNING_INFO
