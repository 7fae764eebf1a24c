"""The gold-chain agent: a searcher by rule, who knows what is sought but not where it stands.

The policy, word by word, is in bench/studies/gold_chain.md.
"""
