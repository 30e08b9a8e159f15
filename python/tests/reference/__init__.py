"""Slow and plain second implementations, which the tests compare the engine with."""
