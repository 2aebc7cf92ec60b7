"""``code-a1 data prepare``: public problem sets -> questions that can be trained on.

``sources`` opens a file, folder or hub set; ``reading`` makes questions of its rows; ``reference_checks`` sends every
reference through the judge; ``decontaminate`` finds duplicates and what overlaps with evaluation sets; ``data_card``
says what was kept, what went and why.
"""
