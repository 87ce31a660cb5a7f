"""Several runs side by side: the thesis' tables, paired differences with intervals, page, terminal, Markdown."""
