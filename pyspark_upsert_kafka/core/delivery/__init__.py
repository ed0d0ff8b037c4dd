"""What a sink promises, and how it is kept: guarantee, acks, receipts of exactly once, the partition of a key."""
