"""RocketMQ's remoting protocol as values: codes, commands, headers and bodies, without any I/O."""
