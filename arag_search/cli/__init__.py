"""The command line: arguments in, formatted results out."""
