"""The gold-chain agent: a rule-based searcher that knows what to look for, but not where it is.

The policy is in bench/studies/gold_chain.md, and its rules in the modules of this package.
"""
