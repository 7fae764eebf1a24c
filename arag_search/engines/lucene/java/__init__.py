"""Our Java classes beside Lucene: their sources, and the jar that is compiled from them.

A call from Python to Java costs about as much as Lucene takes for a small query. A search that is
composed in Python needs about a hundred calls. With these classes a search is one call, and so is
adding a batch of documents.
"""
