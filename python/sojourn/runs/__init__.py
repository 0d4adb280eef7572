"""Runs of scenarios: results, the cache, and execution on threads, processes and clusters."""
