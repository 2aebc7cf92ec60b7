"""Reads question files: recognises their format, and checks each row."""
