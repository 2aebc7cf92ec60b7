"""The experiment on a real model: pairs of runs on one GPU, tables, a figure (``studies/card_results/README.md``)."""
