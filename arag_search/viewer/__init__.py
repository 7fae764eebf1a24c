"""One page of HTML that shows a run, or two, to a person: what is shown is read from where it is
written; here it is only put together."""
