"""Ask and tell: the Searcher, its ledger of points and values, its arguments, its snapshot."""
