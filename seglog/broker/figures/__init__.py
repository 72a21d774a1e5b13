"""The rates of a broker: messages put and pulled over the last minute, hour and day.

Called by handlers, for tools, and by a duty every ten seconds.
Truth: memory; counting begins when the broker is opened.
"""
