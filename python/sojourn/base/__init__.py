"""Foundations that do not depend on scenarios."""
