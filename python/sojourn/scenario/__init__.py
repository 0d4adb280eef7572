"""Scenarios: reading, encoding, overriding; examples; controllers in Python; rate traces."""
