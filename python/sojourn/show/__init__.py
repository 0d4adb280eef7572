"""Tables and pictures of results; computes no statistics."""
