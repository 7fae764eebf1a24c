"""Counterfactual corpora: the same relations between invented names and moved years.

What is replaced and what stays is in bench/studies/counterfactual.md.
"""
