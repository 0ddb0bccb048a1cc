"""Pictures in files: folders and tables of them, decoding, the cache, what to do with unreadable ones."""
