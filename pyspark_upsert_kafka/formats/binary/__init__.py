"""What binary formats have in common: the bytes of many messages, read and written together."""
