"""Validation against other simulators and against the kernel."""
