"""Tables and pictures; nothing here computes statistics."""
