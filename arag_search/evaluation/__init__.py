"""Question files, measures of answers and evidence."""
