"""The agent: a loop in which a language model searches and answers, and the record of it."""
