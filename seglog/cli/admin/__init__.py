"""Commands that change a store or its tables: messages, topics, groups, offsets, retention."""
