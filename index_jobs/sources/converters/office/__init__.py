"""Files of Office and of OpenDocument: texts, slide decks and workbooks."""
