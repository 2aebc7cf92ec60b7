"""Canonical bytes, literals and equality of builtin values, and checkers of printed texts."""
