"""How passages stand in a reply: ids, titles, marks, and the entries of lists."""
