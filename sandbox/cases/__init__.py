"""Turns the text of an assert into a case or a typed rejection. Nothing is executed."""
