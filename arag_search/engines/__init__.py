"""What executes a query over an index: the seam, the engines, and the one in plain Python."""
