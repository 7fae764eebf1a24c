"""The fields that a passage has in every engine beside the fields that queries name."""

ID = "id"
NAME = "names"
"""The names that a passage has by its title and its document; a search for a name matches one."""
ORDINAL = "ordinal"
RECORD = "record"
"""All that is stored of a passage and not searched, as one value."""
