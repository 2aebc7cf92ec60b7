"""EvalPlus's rules of judging and its sanitizer."""
