"""The forms of a reply: what a search shows of what it finds."""
