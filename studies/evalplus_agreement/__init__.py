"""A study: does our judge agree with EvalPlus's own?"""
