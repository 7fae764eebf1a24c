"""One page of HTML that shows a run to a person. The content is read by the code that
owns its format; this package only assembles the page."""
