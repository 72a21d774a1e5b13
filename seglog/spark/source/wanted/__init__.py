"""What is wanted: the options of the source, and the messages that they and pushed filters select."""
