"""A study: how many small mistakes in its references do a data set's own tests notice?"""
