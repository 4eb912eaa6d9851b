"""Items against documents: token views, gram tables, and what is found."""
