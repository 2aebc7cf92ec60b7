"""Builtin values: their canonical bytes, their literals, and when two of them count as equal."""
