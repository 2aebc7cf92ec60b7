"""The text of an assert becomes a case, or a typed rejection. Nothing is executed."""
