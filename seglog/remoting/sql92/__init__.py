"""The conditions on properties that consumers filter by, in RocketMQ's dialect of SQL-92.

``a > 3 AND b IS NOT NULL``: :func:`seglog.remoting.sql92.grammar.compile_sql` makes an expression of the
text, which says of a message's properties whether they match. Grammar and logic are RocketMQ's, with its
three truth values and with what it does where types do not fit.

Source: ``filter/src/main/javacc/SelectorParser.jj``, ``filter/.../expression/*.java``.
"""

from seglog.remoting.sql92.grammar import SqlExpression as SqlExpression
from seglog.remoting.sql92.grammar import compile_sql as compile_sql
