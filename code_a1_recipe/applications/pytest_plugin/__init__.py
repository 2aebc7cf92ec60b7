"""The pytest fixture ``code_a1``: calls on which a function breaks, found while its tests run."""
