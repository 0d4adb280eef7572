"""Figures of papers: declared, found, made and reported."""
