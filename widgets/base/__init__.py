"""What panes and dialogs are made from: lists, details, forms, tables and lines of text."""
