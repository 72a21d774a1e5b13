"""What commands share: options, tables, lines of JSON, texts of messages and findings, failures, exit codes.

Called by all commands.
Truth: none; it renders values.
"""
