"""Figures of papers: declaration, discovery, reproduction and report."""
