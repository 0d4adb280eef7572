"""Measurements of speed and memory."""
