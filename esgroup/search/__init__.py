"""Ask and tell: the Searcher, its ledger, its arguments, its snapshot."""
