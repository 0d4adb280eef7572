"""Explanation of completion times by their FCT breakdown."""
