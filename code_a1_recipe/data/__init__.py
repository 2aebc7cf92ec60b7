"""Question files: read, recognised and checked row by row."""
