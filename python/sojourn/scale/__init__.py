"""Answers for large networks: folded networks, and laws of packets given a fluid."""
