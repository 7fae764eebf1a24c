"""Files and streams of records as a source."""
