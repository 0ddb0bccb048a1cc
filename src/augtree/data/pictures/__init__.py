"""Pictures in files: folders, tables, decoding, the cache."""
