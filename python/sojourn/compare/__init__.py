"""Comparisons of schemes."""
