"""What a consumer says of itself to people, and does for them: how it runs, and one message by hand.

Called by the members of groups and their services.
Truth: memory only.
"""
