"""Canonical bytes, literals and equality of builtin values."""
