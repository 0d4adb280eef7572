"""Explanations of completion times."""
