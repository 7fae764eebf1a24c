"""One page of HTML that shows one or two runs to a person. The content is read by the code that
owns its format; this package only assembles the page."""
