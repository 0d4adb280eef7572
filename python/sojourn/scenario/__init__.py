"""Scenarios: reading, checking and changing them."""
