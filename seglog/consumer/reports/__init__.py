"""Requests of operators to a consumer: its running info, and the consumption of one chosen message.

Called by the members of groups and their services.
Truth: memory only.
"""
