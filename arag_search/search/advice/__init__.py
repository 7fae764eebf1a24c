"""What a reply says beside its hits: what each piece of advice asks of the index, and tells."""
